import { InvalidError } from '@leasehold/core'
import type { Attributes, DynamoClient } from './dynamodb/client.js'
import { type DynamoChange, DynamoItem, type DynamoOptions } from './dynamodb/item.js'
import { bodyOf, type Fenced, type Guard, type OpenOptions } from './common/guard.js'
import type { GuardableHold } from './common/hold.js'
import { tracked } from './common/tracked.js'
import { checkResource } from './common/resource.js'
import { checkWrites, singleTarget } from './common/single-target.js'

export type { Attributes, AttributeValue, DynamoClient } from './dynamodb/client.js'
export type { DynamoChange, DynamoOptions } from './dynamodb/item.js'

/** An open item under a lock. Changes must not overlap. */
export interface DynamoTx {
  /** The item that this unit last read or changed, without the guard's attributes; null if there is none. */
  readonly item: Attributes | null
  /** UpdateItem. If your own `ConditionExpression` fails, this rejects with the SDK's error. */
  update(change: DynamoChange): Promise<Attributes>
  /** PutItem: replaces all attributes. The key may be omitted. */
  put(item: Attributes): Promise<void>
  /** Deletes the attributes. Key and mark remain. */
  delete(): Promise<void>
  /**
   * TransactWriteItems: at most 99 changes of other items, together with a check of this item's mark.
   * If one of your own conditions fails, this rejects with the SDK's error.
   */
  transact(items: readonly object[]): Promise<void>
}

export interface DynamoGuard extends Guard<DynamoTx> {
  /** Raises the mark: changes of earlier holds are rejected from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Opens and reads; null if there is no item. */
  read(hold: GuardableHold, options?: OpenOptions): Promise<Attributes | null>
  /** Opens and changes the item. */
  update(hold: GuardableHold, change: DynamoChange, options?: OpenOptions): Promise<Attributes>
  /** Returns the present item by a consistent read, for readers without a lock. */
  latest(resource: string): Promise<Attributes | null>
}

/**
 * A guard for items of DynamoDB. Mark and data are attributes of one item. Each change carries a condition that DynamoDB
 * checks in the same step, comparing tokens as exact numbers (it stores 38 digits).
 *
 * @example
 * const guard = fence(new DynamoDB({}), { table: 'invoices', key: (resource) => ({ id: { S: resource } }) })
 * await guard.with(hold, async (invoice) => {
 *   const total = Number(invoice.item?.total?.N ?? 0) + 7
 *   await invoice.update({ UpdateExpression: 'SET total = :n', ExpressionAttributeValues: { ':n': { N: String(total) } } })
 * })
 */
export function fence(dynamo: DynamoClient, options: DynamoOptions): DynamoGuard {
  if (typeof dynamo?.updateItem !== 'function' || typeof dynamo.putItem !== 'function') {
    throw new InvalidError('a guard for DynamoDB takes a DynamoDB of @aws-sdk/client-dynamodb', {
      hint: 'new DynamoDB(…), not new DynamoDBClient(…)',
    })
  }
  if (typeof options?.table !== 'string' || typeof options.key !== 'function') {
    throw new InvalidError('a guard for DynamoDB needs { table, key: (resource) => … }')
  }
  const opened = <T>(
    hold: GuardableHold,
    open: OpenOptions | undefined,
    then: (item: DynamoItem) => T | Promise<T>,
    writes = false,
  ): Promise<T> =>
    tracked(hold, async () => {
      const target = singleTarget(hold, options, open, 'item')
      if (writes) checkWrites(target)
      const item = new DynamoItem(dynamo, options, target, () => hold.assertHeld())
      await item.open()
      return await then(item)
    })
  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<DynamoTx>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<DynamoTx>) => T | Promise<T>,
    ): Promise<T> {
      const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
      return opened(hold, open, async (item) => await body(item as unknown as Fenced<DynamoTx>))
    },
    open: (hold, open) => opened(hold, open, () => {}),
    read: (hold, open) => opened(hold, open, (item) => item.item),
    update: (hold, change, open) => opened(hold, open, (item) => item.update(change), true),
    latest: (resource) => DynamoItem.latest(dynamo, options, checkResource(resource)),
  }
}
