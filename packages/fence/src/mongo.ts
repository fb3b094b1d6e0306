import { InvalidError } from '@leasehold/core'
import { bodyOf, type Fenced, type Guard, type OpenOptions } from './common/guard.js'
import type { GuardableHold } from './common/hold.js'
import { tracked } from './common/tracked.js'
import type { Fields, MongoCollection, MongoSession } from './mongo/client.js'
import { MongoDocument, type MongoOptions } from './mongo/document.js'
import { checkResource } from './common/resource.js'
import { checkWrites, singleTarget } from './common/single-target.js'

export type { Fields, MongoCollection, MongoSession } from './mongo/client.js'
export type { MongoOptions } from './mongo/document.js'

/** An open document under a lock. Changes must not overlap. */
export interface MongoTx {
  /** The document that this unit last read or changed, without the guard's field; null if there is none. */
  readonly document: Fields | null
  /** Updates by operators (`$set`, `$inc`, …). Returns the new document. */
  update(change: Fields): Promise<Fields>
  /** Replaces all fields. */
  replace(document: Fields): Promise<void>
  /** Deletes the fields. `_id` and mark remain. */
  delete(): Promise<void>
}

export interface MongoGuard extends Guard<MongoTx> {
  /** Raises the mark: changes of earlier holds are rejected from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Opens and reads; null if there is no document. */
  read(hold: GuardableHold, options?: OpenOptions): Promise<Fields | null>
  /** Opens and changes the document. */
  update(hold: GuardableHold, change: Fields, options?: OpenOptions): Promise<Fields>
  /**
   * Raises the mark as the first operation of a transaction of yours, for units of several documents. Other holds cannot open
   * until the commit; MongoDB aborts a transaction that conflicts.
   */
  enter(session: MongoSession, hold: GuardableHold, options?: OpenOptions): Promise<Fields | null>
  /** Returns the document as acknowledged by a majority, for readers without a lock. */
  latest(resource: string): Promise<Fields | null>
}

/**
 * A guard for documents of MongoDB. Mark and data are in one document. One command checks and changes both, acknowledged by a
 * majority. Marks are 64-bit integers, which MongoDB compares exactly.
 *
 * @example
 * const guard = fence(client.db('shop').collection('invoices'))
 * await guard.with(hold, async (invoice) => invoice.update({ $set: { total: (invoice.document?.total ?? 0) + 7 } }))
 */
export function fence(collection: MongoCollection, options: MongoOptions = {}): MongoGuard {
  if (typeof collection?.findOneAndUpdate !== 'function' || typeof collection.findOne !== 'function') {
    throw new InvalidError('a guard for MongoDB takes a collection of the driver: client.db().collection(name)')
  }
  const opened = <T>(
    hold: GuardableHold,
    open: OpenOptions | undefined,
    then: (document: MongoDocument) => T | Promise<T>,
    more: { writes?: boolean; session?: MongoSession } = {},
  ): Promise<T> =>
    tracked(hold, async () => {
      const target = singleTarget(hold, options, open, 'document')
      if (more.writes === true) checkWrites(target)
      const document = new MongoDocument(collection, options, target, () => hold.assertHeld())
      await document.open(more.session)
      return await then(document)
    })
  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<MongoTx>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<MongoTx>) => T | Promise<T>,
    ): Promise<T> {
      const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
      return opened(hold, open, async (document) => await body(document as unknown as Fenced<MongoTx>))
    },
    open: (hold, open) => opened(hold, open, () => {}),
    read: (hold, open) => opened(hold, open, (document) => document.document),
    update: (hold, change, open) => opened(hold, open, (document) => document.update(change), { writes: true }),
    async enter(session, hold, open) {
      if (typeof session?.inTransaction !== 'function' || !session.inTransaction()) {
        throw new InvalidError('guard.enter takes a session in a transaction', {
          hint: 'client.withSession((session) => session.withTransaction(async () => { await guard.enter(session, hold); … }))',
        })
      }
      return await opened(hold, open, (document) => document.document, { session })
    },
    latest: (resource) => MongoDocument.latest(collection, options, checkResource(resource)),
  }
}
