import { InvalidError } from '@leasehold/core'
import type { Fenced, Guard } from '../common/guard.js'
import { problemOf } from './errors.js'
import { checkRoute, type FencedRoute, runFenced, sentTooEarly } from './route.js'

/** What the interceptor uses of Nest's `ExecutionContext`, `CallHandler` and `HttpException`. */
export interface NestContext {
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown }
}
export interface NestHandler {
  handle(): {
    subscribe(observer: { next(value: unknown): void; error(error: unknown): void; complete(): void }): unknown
  }
}
export type NestException = new (body: Record<string, unknown>, status: number) => Error

export interface NestRoute<Request> extends FencedRoute<Request> {
  /** Nest's own class, from `@nestjs/common`. */
  readonly HttpException: NestException
}

interface NestRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}
interface NestResponse {
  readonly headersSent?: boolean
  readonly sent?: boolean
  setHeader?(name: string, value: string): unknown
  header?(name: string, value: string): unknown
}

const transactions = new WeakMap<object, unknown>()

/**
 * Returns the transaction in which {@link FencingInterceptor} runs the handler of a request.
 * @throws InvalidError outside of such a handler
 */
export function fencedTx<Tx>(request: object): Fenced<Tx> {
  const tx = transactions.get(request)
  if (tx === undefined) {
    throw new InvalidError('this request does not run in a guarded transaction', {
      hint: 'put @UseInterceptors(new FencingInterceptor(guard, …)) on the route, and do no work after the handler has returned',
    })
  }
  return tx as Fenced<Tx>
}

/**
 * An interceptor for Nest, on Express or Fastify: the route's handler runs in a transaction that checks the caller's token.
 * 428 without one, 412 for a stale one. The handler gets its transaction by {@link fencedTx}; its return value is sent
 * after the commit.
 * @example
 * @Put(':id')
 * @UseInterceptors(new FencingInterceptor(fence(pool), { lock: (request) => `item/${request.params.id}`, HttpException }))
 * async put(@Req() request: Request) {
 *   await fencedTx<PoolClient>(request).query('UPDATE items SET n = n + 1 WHERE id = $1', [request.params.id])
 * }
 */
export class FencingInterceptor<Tx, Request = { readonly params: Readonly<Record<string, string>> }> {
  readonly #guard: Guard<Tx>
  readonly #route: NestRoute<Request>

  constructor(guard: Guard<Tx>, route: NestRoute<Request>) {
    checkRoute(guard, route, () => {})
    if (typeof route.HttpException !== 'function') {
      throw new InvalidError('a fenced route of Nest needs { HttpException } of @nestjs/common')
    }
    this.#guard = guard
    this.#route = route
  }

  /** Returns an array of one value, which Nest accepts as a stream of one value, like an Observable. */
  async intercept(context: NestContext, next: NestHandler): Promise<never> {
    const http = context.switchToHttp()
    const request = http.getRequest() as NestRequest
    const response = http.getResponse() as NestResponse
    try {
      const lock = this.#route.lock(request as Request)
      const value = await runFenced(this.#guard, request.headers, lock, async (tx) => {
        transactions.set(request, tx)
        try {
          const answer = await lastOf(next)
          if (response.headersSent === true || response.sent === true) throw sentTooEarly()
          return answer
        } finally {
          transactions.delete(request)
        }
      })
      return [value] as never
    } catch (error) {
      const problem = problemOf(error)
      if (problem === undefined) throw error
      if (response.setHeader !== undefined) response.setHeader('content-type', problem.contentType)
      else response.header?.('content-type', problem.contentType)
      throw new this.#route.HttpException(problem.body, problem.status)
    }
  }
}

/** Returns the last value of the handler's stream. */
function lastOf(next: NestHandler): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let last: unknown
    next.handle().subscribe({
      next(value) {
        last = value
      },
      error: reject,
      complete: () => resolve(last),
    })
  })
}
