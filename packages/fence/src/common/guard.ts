import { InvalidError } from '@leasehold/core'
import type { GuardableHold } from './hold.js'

declare const fenced: unique symbol

/**
 * A transaction whose resources have been opened. Ask for this type where data under a lock is read or written, and the
 * compiler refuses every way around the guard.
 * @example
 * async function addItem(tx: Fenced<PoolClient>, item: Item) { … }
 */
export type Fenced<Tx> = Tx & { readonly [fenced]: true }

export interface OpenOptions {
  /** Of a hold of several locks: the one that protects this resource. Default: all of them, each with its own mark. */
  readonly lock?: string
}

/** What every guard can do with a resource under a lock. */
export interface Guard<Tx> {
  /**
   * Opens (raises the marks first) and runs `body`, both in one transaction. The only way to read or write under a lock
   * without losing updates: a stale write that arrives after this opening is refused.
   * @throws StaleTokenError, HoldLostError, InvalidError, UnavailableError (nothing written),
   *   UnknownOutcomeError (the commit was sent and its answer lost), and whatever `body` throws
   */
  with<T>(hold: GuardableHold, body: (tx: Fenced<Tx>) => T | Promise<T>): Promise<T>
  with<T>(hold: GuardableHold, options: OpenOptions, body: (tx: Fenced<Tx>) => T | Promise<T>): Promise<T>
}

/** Sorts out the two forms of `with`. */
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
   * The name under which the mark is kept: of the lock's scope, not of a row. Default: the lock's name.
   * Called for each lock that is opened.
   */
  readonly resource?: (hold: GuardableHold, lock: string) => string
  /** The schema (PostgreSQL) or attached database (SQLite) of the guard's tables. Default: as names resolve. */
  readonly schema?: string
}

/** What `prune` needs of the client: one short exclusive hold, and the list of all holds. */
export interface PruneLocks {
  acquire(name: string): Promise<GuardableHold & { release(): Promise<unknown> }>
  query(options: { limit: number; cursor?: string }): Promise<{
    readonly held: readonly { readonly locks: readonly { readonly token: bigint }[] }[]
    readonly next: string | undefined
  }>
}

export interface Pruned {
  /** Tokens below are refused from now on, whether their resource has a mark or not. */
  readonly floor: bigint
  /** How many marks were deleted. */
  readonly deleted: number
}
