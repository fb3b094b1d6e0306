import type { Hold, LockNames, Locks, RequestOptions } from '@leasehold/client'
import { withStatus } from './http-status.js'

/** The client, the locks and the acquire options of a route. */
export interface HoldOptions<Context> extends Omit<RequestOptions, 'ifAvailable' | 'signal'> {
  readonly locks: Locks
  /** The locks, or a function of the context. */
  readonly name: LockNames | ((context: Context) => LockNames)
}

/** The part of Hono's context that is used. */
export interface ContextLike {
  readonly req: { readonly raw: { readonly signal?: AbortSignal | null } }
}

/**
 * Returns a handler that runs under a hold, its second argument. The acquire is aborted when the HTTP client disconnects, on
 * platforms that report it. The lock is released when the handler returns the response, before it is sent: a streamed body is
 * not covered.
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
