import type { Hold, LockNames, Locks, RequestOptions } from '@leasehold/client'
import type { Duration } from '@leasehold/core'
import { withStatus } from './http-status.js'
import { runWithHold } from './decorator.js'

export { currentHold } from './decorator.js'

/** The client, the locks and the acquire options of a route. */
export interface HoldOptions<Request> extends Omit<RequestOptions, 'ifAvailable' | 'signal'> {
  readonly locks: Locks
  /** The locks, or a function of the request. */
  readonly name: LockNames | ((request: Request) => LockNames)
}

/** The part of Fastify's reply that is used. */
export interface ReplyLike {
  readonly raw: {
    readonly writableFinished: boolean
    once(event: 'close', listener: () => void): unknown
    removeListener(event: 'close', listener: () => void): unknown
  }
}

/**
 * Returns a handler that runs under a hold, its third argument. The acquire is aborted when the HTTP client disconnects. The
 * lock is released before the reply is sent: return the payload rather than calling `reply.send` before your last effect.
 *
 * @example
 * app.post('/invoices/:id', withHold({ locks, name: (request) => `invoice/${request.params.id}`, wait: '2s' },
 *   async (request, reply, hold) => { … }))
 */
export function withHold<Request, Reply extends ReplyLike, T>(
  { locks, name, ...options }: HoldOptions<Request>,
  handler: (request: Request, reply: Reply, hold: Hold) => T | Promise<T>,
): (request: Request, reply: Reply) => Promise<T> {
  return async function held(this: unknown, request: Request, reply: Reply): Promise<T> {
    const gone = new AbortController()
    const close = () => {
      if (!reply.raw.writableFinished) gone.abort(new Error('the client has closed its connection'))
    }
    reply.raw.once('close', close)
    try {
      const names = typeof name === 'function' ? name(request) : name
      const body = (hold: Hold) => runWithHold(hold, () => handler.call(this, request, reply, hold))
      return await withStatus(locks.request(names, { ...options, signal: gone.signal, ifAvailable: false }, body))
    } finally {
      reply.raw.removeListener('close', close)
    }
  }
}

/** The part of Fastify's application that is used. */
export interface AppLike {
  decorate(name: string, value: unknown): unknown
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

/**
 * A plugin: `app.locks` is the client; it is closed with the application, after the requests in flight.
 * @example
 * await app.register(leasehold, { locks: createLocks('http://127.0.0.1:4100') })
 */
export async function leasehold(app: AppLike, options: { locks: Locks; drain?: Duration }): Promise<void> {
  const { locks, drain = '10s' } = options
  app.decorate('locks', locks)
  app.addHook('onClose', () => locks.close({ drain }))
}

// Tells Fastify that the decoration is for the whole application, and not for the plugin alone.
Object.assign(leasehold, { [Symbol.for('skip-override')]: true })
