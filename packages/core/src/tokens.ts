import type { Brand, Serial } from './brand.js'
import { InvalidError } from './errors.js'

/**
 * A fencing token: `epoch × 2^48 + counter`, a positive 63-bit integer that grows with every grant.
 * `bigint` in TypeScript, a decimal string in JSON, 19 zero-padded digits where a store compares text.
 */
export type Token = Brand<bigint, 'Token'>

export const COUNTER_BITS = 48n
export const COUNTER_MAX = 2 ** 48 - 1
export const EPOCH_MAX = 2 ** 15 - 1
export const TOKEN_MAX = 2n ** 63n - 1n

/** The full id of a counter value: tokens, hold ids, session ids and register versions are all made this way. */
export function tokenOf(epoch: number, serial: Serial): Token {
  return ((BigInt(epoch) << COUNTER_BITS) | BigInt(serial)) as Token
}

/** The epoch and counter value of a full id. */
export function splitToken(token: bigint): { epoch: number; serial: Serial } {
  if (token <= 0n || token > TOKEN_MAX) throw new InvalidError(`a token is between 1 and 2^63-1, not ${token}`)
  return { epoch: Number(token >> COUNTER_BITS), serial: Number(token & BigInt(COUNTER_MAX)) as Serial }
}

/** Formats a token as a decimal string, for JSON, headers and environment variables. */
export function formatToken(token: bigint): string {
  checkToken(token)
  return token.toString()
}

/** Formats a token as 19 zero-padded digits, for stores that compare text. */
export function padToken(token: bigint): string {
  checkToken(token)
  return token.toString().padStart(19, '0')
}

/**
 * Parses the decimal form of a token, padded or not. A JSON number is rejected: above 2^53 it has already lost digits.
 * @throws InvalidError
 */
export function parseToken(text: string | bigint): Token {
  if (typeof text === 'bigint') {
    checkToken(text)
    return text as Token
  }
  if (typeof text !== 'string') {
    throw new InvalidError(`a token is a decimal string or a bigint, not a ${typeof text}`, {
      hint: 'JSON numbers lose digits above 2^53: send the token as a string',
    })
  }
  if (!/^[0-9]{1,19}$/.test(text)) throw new InvalidError(`not a token: ${JSON.stringify(text.slice(0, 40))}`)
  const token = BigInt(text)
  checkToken(token)
  return token as Token
}

function checkToken(token: unknown): void {
  if (typeof token !== 'bigint') {
    throw new InvalidError(`a token is a bigint, not a ${typeof token}`, {
      hint: 'use parseToken(text) for a token that comes as text',
    })
  }
  if (token <= 0n || token > TOKEN_MAX) throw new InvalidError(`a token is between 1 and 2^63-1, not ${token}`)
}

/**
 * Returns the digits that all tokens begin with, so that a display can dim them. Empty for fewer than two different tokens and
 * for tokens of different lengths. Each token has at least one more digit.
 */
export function commonPrefix(tokens: Iterable<bigint>): string {
  const texts = [...new Set([...tokens].map(String))]
  const first = texts[0]
  if (first === undefined || texts.length < 2) return ''
  if (texts.some((text) => text.length !== first.length)) return ''
  let length = 0
  while (texts.every((text) => text[length] === first[length])) length++
  return first.slice(0, length)
}
