import type { Fenced, Guard } from '../common/guard.js'
import { responseOf, checkRoute, type FencedRoute, runFenced, sentTooEarly } from './route.js'

/** What a fenced route uses of Fastify's request. */
export interface FastifyRequestLike {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly params: unknown
  readonly body: unknown
}

/** What a fenced route uses of Fastify's reply. */
export interface FastifyReplyLike {
  readonly sent: boolean
  code(status: number): FastifyReplyLike
  type(type: string): FastifyReplyLike
  send(body?: unknown): FastifyReplyLike
}

/**
 * A handler for Fastify whose transaction checks the caller's token: 428 without one, 412 for a stale one. The return
 * value is sent after the commit (204 for undefined). Other errors are passed to Fastify's error handler.
 * @example
 * app.put('/items/:id', fenced(fence(pool), { lock: (request) => `item/${request.params.id}` }, async (tx, request) => {
 *   await tx.query('UPDATE items SET n = $1 WHERE id = $2', [request.body.n, request.params.id])
 * }))
 */
export function fenced<Tx, Request extends FastifyRequestLike = FastifyRequestLike>(
  guard: Guard<Tx>,
  route: FencedRoute<Request>,
  handler: (tx: Fenced<Tx>, request: Request, reply: FastifyReplyLike) => unknown,
): (request: Request, reply: FastifyReplyLike) => Promise<unknown> {
  checkRoute(guard, route, handler)
  return async (request, reply) => {
    try {
      const body = await runFenced(guard, request.headers, route.lock(request), async (tx) => {
        const answer = await handler(tx, request, reply)
        if (reply.sent) throw sentTooEarly()
        return answer
      })
      if (body === undefined) return reply.code(204).send()
      return body
    } catch (error) {
      const { status, contentType, body } = responseOf(error)
      if (reply.sent) throw error
      return reply.code(status).type(contentType).send(JSON.stringify(body))
    }
  }
}
