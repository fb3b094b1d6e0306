import { InvalidError, LeaseholdError, nameProblem, parseToken, type Token } from '@leasehold/core'
import { type GuardableHold, locksOf } from './common/hold.js'

/** The header with which one service hands its right to write on to another: `Fencing-Token: billing%2Finvoice-42=33`. */
export const FENCING_HEADER = 'Fencing-Token'

/** More locks than a hold can have: a longer header is refused. */
const LOCKS_MAX = 64
const HEADER_LENGTH_MAX = 64 * 1_600

/**
 * The value of the header for a hold: `name=token`, names percent-encoded, several by comma.
 * @throws InvalidError for holds with permits: a slot cannot be handed on
 */
export function fencingHeader(hold: GuardableHold, options: { readonly lock?: string } = {}): string {
  hold.assertHeld()
  const locks = locksOf(hold).filter((lock) => options.lock === undefined || lock.name === options.lock)
  if (locks.length === 0) throw new InvalidError(`this hold has no lock ${JSON.stringify(options.lock)}`)
  for (const lock of locks) {
    if (lock.mode !== 'exclusive') {
      throw new InvalidError(`the header is for exclusive locks, and ${JSON.stringify(lock.name)} is not one`, {
        hint: 'choose the exclusive one with { lock }',
      })
    }
  }
  return locks.map((lock) => `${encodeURIComponent(lock.name)}=${lock.token}`).join(', ')
}

/**
 * `fetch` that carries the tokens of a hold. The hold is checked at each call.
 * @example
 * const response = await fencedFetch(hold)('https://stock.internal/items/7', { method: 'PUT', body })
 */
export function fencedFetch(
  hold: GuardableHold,
  options: { readonly lock?: string; readonly fetch?: typeof globalThis.fetch } = {},
): typeof globalThis.fetch {
  const send = options.fetch ?? globalThis.fetch
  return async (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    headers.set(FENCING_HEADER, fencingHeader(hold, options))
    return await send(input, { ...init, headers })
  }
}

/** The caller sent no fencing token. HTTP status 428. */
export class FencingRequiredError extends InvalidError {
  static override readonly errorClass: string = 'FencingRequiredError'
  constructor(lock?: string) {
    const name = lock === undefined ? 'name' : encodeURIComponent(lock)
    const which = lock === undefined ? '' : ` with a token for the lock ${JSON.stringify(lock)}`
    super(`this resource needs the header ${FENCING_HEADER}${which}`, {
      hint: `send ${FENCING_HEADER}: ${name}=33, with the token of your hold`,
    })
  }
}

/** Headers as Node, Express and Fastify have them, or as `fetch`, Hono and the like have them. */
export type HeadersLike =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * The hold that a request carries. It goes into a guard, inside the transaction of the handler: only there is it checked.
 * @throws FencingRequiredError when there is none, InvalidError when it cannot be read
 * @example
 * app.put('/items/:id', async (request, reply) => {
 *   const hold = holdOfRequest(request.headers)
 *   await guard.with(hold, (tx) => tx.query('UPDATE items SET …'))
 * })
 */
export function holdOfRequest(headers: HeadersLike): GuardableHold {
  const text = headerOf(headers)
  if (text === undefined || text.trim() === '') throw new FencingRequiredError()
  const locks = parseFencingHeader(text).map(({ name, token }) => ({ name, token, mode: 'exclusive' as const }))
  const tokenOf = (name: string) => {
    const lock = locks.find((one) => one.name === name)
    if (lock === undefined) throw new InvalidError(`the request has no token for ${JSON.stringify(name)}`)
    return lock.token
  }
  return { locks, names: locks.map((lock) => lock.name), mode: 'exclusive', tokenOf, assertHeld() {} }
}

/** Reads the value of the header. @throws InvalidError */
export function parseFencingHeader(text: string): { readonly name: string; readonly token: Token }[] {
  if (text.length > HEADER_LENGTH_MAX)
    throw new InvalidError(`${FENCING_HEADER} is longer than ${HEADER_LENGTH_MAX} characters`)
  const locks = text.split(',').map((part) => {
    const match = /^\s*([^=,\s]+)=([0-9]{1,19})\s*$/.exec(part)
    if (match === null) {
      throw new InvalidError(`${FENCING_HEADER} is name=token, not ${JSON.stringify(part.slice(0, 60))}`, {
        hint: 'names are percent-encoded; several locks are separated by commas',
      })
    }
    return { name: decodeName(match[1] as string), token: parseToken(match[2] as string) }
  })
  if (locks.length > LOCKS_MAX) throw new InvalidError(`${FENCING_HEADER} names at most ${LOCKS_MAX} locks`)
  if (new Set(locks.map((lock) => lock.name)).size !== locks.length) {
    throw new InvalidError(`${FENCING_HEADER} names a lock twice`)
  }
  return locks
}

function decodeName(text: string): string {
  let name: string
  try {
    name = decodeURIComponent(text)
  } catch (cause) {
    throw new InvalidError(`not a percent-encoded name: ${JSON.stringify(text.slice(0, 60))}`, { cause })
  }
  const problem = nameProblem(name)
  if (problem !== undefined) throw new InvalidError(problem)
  return name
}

function headerOf(headers: HeadersLike): string | undefined {
  if (typeof headers.get === 'function')
    return (headers as { get(name: string): string | null | undefined }).get(FENCING_HEADER) ?? undefined
  const wanted = FENCING_HEADER.toLowerCase()
  for (const [name, value] of Object.entries(headers as Record<string, string | readonly string[] | undefined>)) {
    if (name.toLowerCase() === wanted) return typeof value === 'string' ? value : value?.join(',')
  }
  return undefined
}

/** An answer in the form of RFC 9457. */
export interface Problem {
  readonly status: number
  readonly contentType: 'application/problem+json'
  readonly body: {
    readonly type: string
    readonly title: string
    readonly status: number
    readonly detail: string
    readonly code: string
    readonly [extra: string]: unknown
  }
}

/**
 * What to answer when a guarded handler failed: 428 without a token, 412 for a stale one, 400 for a wrong one, 503 when the
 * store is not there (nothing was written), 504 when nobody knows whether it was.
 * Undefined for errors that are not of the guard: let them go their way.
 */
export function problemOf(error: unknown): Problem | undefined {
  if (!(error instanceof LeaseholdError)) return undefined
  const { code } = error
  if (error instanceof FencingRequiredError)
    return problem(428, 'Precondition Required', 'fencing-token-required', error)
  if (code === 'stale-token') return problem(412, 'Precondition Failed', code, error)
  if (code === 'invalid' || code === 'mismatch') return problem(400, 'Bad Request', code, error)
  if (code === 'unreachable') return problem(503, 'Service Unavailable', code, error)
  if (code === 'unknown-outcome') return problem(504, 'Gateway Timeout', code, error)
  return undefined
}

function problem(status: number, title: string, code: string, error: LeaseholdError): Problem {
  const { message, hint, resource, token, mark } = error.toJSON()
  const extra = Object.entries({ hint, resource, token, mark }).filter(([, value]) => value !== undefined)
  const type = `https://leasehold.invalid/problems/${code}`
  const body = { type, title, status, detail: String(message), code, ...Object.fromEntries(extra) }
  return { status, contentType: 'application/problem+json', body }
}
