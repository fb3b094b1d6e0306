import type { Hold, LockNames, Locks, RequestOptions } from '@leasehold/client'
import { withStatus } from './http-status.js'

/** How a route is locked. */
export interface HoldOptions<Context> extends Omit<RequestOptions, 'ifAvailable' | 'signal'> {
  readonly locks: Locks
  /** The locks, or a function of the context. */
  readonly name: LockNames | ((context: Context) => LockNames)
}

/** What is needed of a context of Hono's. */
export interface ContextLike {
  readonly req: { readonly raw: { readonly signal?: AbortSignal | null } }
}

/**
 * A handler that runs under a hold, which it gets as second argument. A client that goes away ends the waiting, where the
 * platform tells. The lock is given back when the response exists, before it is sent: a streamed body is no longer covered.
 *
 * @example
 * app.post('/invoices/:id', withHold({ locks, name: (c) => `invoice/${c.req.param('id')}` }, async (c, hold) => c.json(…)))
 */
export function withHold<Context extends ContextLike, T>(
  { locks, name, ...options }: HoldOptions<Context>,
  handler: (context: Context, hold: Hold) => T | Promise<T>,
): (context: Context) => Promise<T> {
  return (context) => {
    const { signal } = context.req.raw
    const names = typeof name === 'function' ? name(context) : name
    const request = { ...options, ...(signal ? { signal } : {}), ifAvailable: false as const }
    return withStatus(locks.request(names, request, (hold) => handler(context, hold)))
  }
}
