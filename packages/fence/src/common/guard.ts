import { InvalidError } from '@leasehold/core'
import type { GuardableHold } from './hold.js'

declare const fenced: unique symbol

/**
 * A transaction whose resources are open. Functions that read or write data under a lock require this type, so that the
 * compiler rejects every call that bypasses the guard.
 * @example
 * async function addItem(tx: Fenced<PoolClient>, item: Item) { … }
 */
export type Fenced<Tx> = Tx & { readonly [fenced]: true }

export interface OpenOptions {
  /** Which lock of the hold protects this resource. Default: all of them, each with its own mark. */
  readonly lock?: string
}

/** A guard of a resource under a lock. */
export interface Guard<Tx> {
  /**
   * Raises the marks, then runs `body`, both in one transaction. A stale write that arrives after the opening is rejected, so
   * nothing that `body` reads can be overwritten unseen.
   * @throws StaleTokenError, HoldLostError, InvalidError, UnavailableError (nothing written),
   *   UnknownOutcomeError (the commit was sent and its answer is lost), and whatever `body` throws
   */
  with<T>(hold: GuardableHold, body: (tx: Fenced<Tx>) => T | Promise<T>): Promise<T>
  with<T>(hold: GuardableHold, options: OpenOptions, body: (tx: Fenced<Tx>) => T | Promise<T>): Promise<T>
}

/** Normalizes the two overloads of `with`. */
export function bodyOf<Tx, T>(
  optionsOrBody: OpenOptions | ((tx: Fenced<Tx>) => T | Promise<T>),
  body: ((tx: Fenced<Tx>) => T | Promise<T>) | undefined,
): { options: OpenOptions; body: (tx: Fenced<Tx>) => T | Promise<T> } {
  if (typeof optionsOrBody === 'function') return { options: {}, body: optionsOrBody }
  if (typeof body !== 'function')
    throw new InvalidError('guard.with takes a function to run: guard.with(hold, async (tx) => …)')
  return { options: optionsOrBody, body }
}

export interface GuardOptions {
  /**
   * Returns the name under which the mark is stored. It names the scope of the lock, not a row. Called once per opened lock.
   * Default: the lock's name.
   */
  readonly resource?: (hold: GuardableHold, lock: string) => string
  /** The schema (PostgreSQL) or attached database (SQLite) of the guard's tables. Default: unqualified names. */
  readonly schema?: string
}

/** What `prune` needs of the client: one short exclusive hold and the list of all holds. */
export interface PruneLocks {
  acquire(name: string): Promise<GuardableHold & { release(): Promise<unknown> }>
  query(options: { limit: number; cursor?: string }): Promise<{
    readonly held: readonly { readonly locks: readonly { readonly token: bigint }[] }[]
    readonly next: string | undefined
  }>
}

export interface Pruned {
  /** Lower tokens are rejected from now on, whether or not their resource has a mark. */
  readonly floor: bigint
  /** The number of deleted marks. */
  readonly deleted: number
}
