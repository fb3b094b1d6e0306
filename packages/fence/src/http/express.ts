import type { Fenced, Guard } from '../common/guard.js'
import { problemOf } from './errors.js'
import { checkRoute, type FencedRoute, runFenced, sentTooEarly } from './route.js'

/** What a fenced route uses of Express's `Request`. */
export interface ExpressRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly params: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** What a fenced route uses of Express's `Response`. */
export interface ExpressResponse {
  readonly headersSent: boolean
  status(code: number): ExpressResponse
  type(type: string): ExpressResponse
  json(body: unknown): unknown
  send(body: string): unknown
  end(): unknown
}

/**
 * A handler for Express whose transaction checks the caller's token: 428 without one, 412 for a stale one. The return
 * value is sent as JSON after the commit (204 for undefined). Other errors are passed to `next`.
 * @example
 * app.put('/items/:id', fenced(fence(pool), { lock: (request) => `item/${request.params.id}` }, async (tx, request) => {
 *   await tx.query('UPDATE items SET n = $1 WHERE id = $2', [request.body.n, request.params.id])
 * }))
 */
export function fenced<Tx, Request extends ExpressRequest = ExpressRequest>(
  guard: Guard<Tx>,
  route: FencedRoute<Request>,
  handler: (tx: Fenced<Tx>, request: Request, response: ExpressResponse) => unknown,
): (request: Request, response: ExpressResponse, next: (error?: unknown) => void) => Promise<void> {
  checkRoute(guard, route, handler)
  return async (request, response, next) => {
    try {
      const body = await runFenced(guard, request.headers, route.lock(request), async (tx) => {
        const answer = await handler(tx, request, response)
        if (response.headersSent) throw sentTooEarly()
        return answer
      })
      if (body === undefined) response.status(204).end()
      else response.json(body)
    } catch (error) {
      const problem = problemOf(error)
      if (problem === undefined || response.headersSent) return next(error)
      response.status(problem.status).type(problem.contentType).send(JSON.stringify(problem.body))
    }
  }
}
