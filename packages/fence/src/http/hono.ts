import type { Fenced, Guard } from '../common/guard.js'
import { responseOf, checkRoute, type FencedRoute, runFenced } from './route.js'

/** What a fenced route uses of Hono's context. */
export interface HonoContext {
  readonly req: { readonly raw: { readonly headers: { get(name: string): string | null } } }
}

/**
 * A handler for Hono whose transaction checks the caller's token: 428 without one, 412 for a stale one. A returned
 * Response is sent after the commit; other values are sent as JSON (204 for undefined). Other errors are rethrown.
 * @example
 * app.put('/items/:id', fenced(fence(pool), { lock: (c) => `item/${c.req.param('id')}` }, async (tx, c) => {
 *   await tx.query('UPDATE items SET n = n + 1 WHERE id = $1', [c.req.param('id')])
 *   return c.body(null, 204)
 * }))
 */
export function fenced<Tx, Context extends HonoContext = HonoContext>(
  guard: Guard<Tx>,
  route: FencedRoute<Context>,
  handler: (tx: Fenced<Tx>, context: Context) => unknown,
): (context: Context) => Promise<Response> {
  checkRoute(guard, route, handler)
  return async (context) => {
    try {
      const { headers } = context.req.raw
      const answer = await runFenced(guard, headers, route.lock(context), async (tx) => await handler(tx, context))
      if (answer instanceof Response) return answer
      return answer === undefined ? new Response(null, { status: 204 }) : Response.json(answer)
    } catch (error) {
      const { status, contentType, body } = responseOf(error)
      return new Response(JSON.stringify(body), { status, headers: { 'content-type': contentType } })
    }
  }
}
