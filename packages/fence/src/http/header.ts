import { InvalidError, nameProblem, parseToken, type Token } from '@leasehold/core'
import { type GuardableHold, locksOf } from '../common/hold.js'
import { FENCING_HEADER, FencingRequiredError } from './errors.js'

/** The limits of a header; a hold has at most as many locks. */
const LOCKS_MAX = 64
const HEADER_LENGTH_MAX = 64 * 1_600

/**
 * Returns the header's value for a hold: `name=token` with percent-encoded names, separated by commas.
 * @throws InvalidError for locks that are not exclusive
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
 * Returns a `fetch` that sends the tokens of a hold, and checks the hold at each call.
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

/** Headers in the form of Node, Express and Fastify, or of `fetch` and Hono. */
export type HeadersLike =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Returns the hold that a request carries. Only a guard, inside the handler's transaction, checks its tokens.
 * @throws FencingRequiredError if there is none, InvalidError if the header is malformed
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

/** Parses the value of the header. @throws InvalidError */
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
