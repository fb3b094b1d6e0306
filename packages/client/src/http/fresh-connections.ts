import { processWide } from '../platform.js'

/** A connection pool of `fetch` in Node. */
export interface Dispatcher {
  dispatch(...args: readonly unknown[]): unknown
  close(): Promise<void>
}

type AgentClass = new (options?: unknown) => Dispatcher

/** Where Node's `fetch` and the package `undici` keep the pool that requests use by default. */
const GLOBAL_DISPATCHER = Symbol.for('undici.globalDispatcher.1')

/**
 * An empty pool with the options of the one that `fetch` uses, so that a request cannot get a connection that has gone silent.
 * Undefined where this is not possible: in other runtimes, or when the application has replaced the pool by another kind.
 */
export function freshConnections(): Dispatcher | undefined {
  const present = processWide[GLOBAL_DISPATCHER] as Dispatcher | undefined
  const type = present?.constructor as (AgentClass & { readonly name: string }) | undefined
  if (present === undefined || type?.name !== 'Agent') return undefined
  // A pool with interceptors would lose them.
  if (present.dispatch !== (type.prototype as Dispatcher).dispatch) return undefined
  const key = Object.getOwnPropertySymbols(present).find(({ description }) => description === 'options')
  if (key === undefined) return undefined
  try {
    return new type((present as unknown as Record<symbol, unknown>)[key])
  } catch {
    return undefined
  }
}

/** Closes a pool after its last answer. */
export function closeConnections(pool: Dispatcher | undefined): void {
  pool?.close().catch(() => {})
}
