import { readFileSync } from 'node:fs'
import { AccessError, InvalidError, UnavailableError } from '@leasehold/core'
import { createLocalJWKSet, createRemoteJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import type { Principal } from './principal.js'
import { parseRule } from './rules.js'

export interface JwtOptions {
  /** File or http(s) URL of a JSON Web Key Set. */
  readonly jwks: string
  readonly issuer: string
  readonly audience: string
}

/** Only signatures that need a private key: a shared secret would make every member able to sign. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
/** The claim that lists the access rules. */
export const RULES_CLAIM = 'leasehold'
const CLOCK_TOLERANCE_S = 5
const FETCH_TIMEOUT_MS = 3000
const RULES_MAX = 64

/** Verifies JSON Web Tokens whose claim `leasehold` lists access rules. A token without `exp` is rejected. */
export class JwtVerifier {
  readonly #options: JwtOptions
  #keys: ReturnType<typeof createLocalJWKSet> | ReturnType<typeof createRemoteJWKSet>

  /** @throws InvalidError for a key set that cannot be read */
  constructor(options: JwtOptions) {
    this.#options = options
    this.#keys = keysOf(options.jwks)
  }

  /** The file of the key set; undefined for a URL, whose set is fetched again when it has no key of a token. */
  get file(): string | undefined {
    return isUrl(this.#options.jwks) ? undefined : this.#options.jwks
  }

  /** Reads the file of the key set again. @throws InvalidError, and keeps the previous set */
  reload(): void {
    this.#keys = keysOf(this.#options.jwks)
  }

  /** @throws AccessError, UnavailableError when the key set cannot be fetched */
  async verify(text: string): Promise<Principal> {
    const { issuer, audience } = this.#options
    const requiredClaims = ['exp', 'sub']
    let payload: JWTPayload
    try {
      const settings = { issuer, audience, algorithms: ALGORITHMS, clockTolerance: CLOCK_TOLERANCE_S, requiredClaims }
      ;({ payload } = await jwtVerify(text, this.#keys, settings))
    } catch (cause) {
      if (cause instanceof errors.JOSEError && !isOfKeySet(cause)) {
        throw new AccessError(`this web token is rejected: ${cause.message}`, { cause, hint: 'get a new one' })
      }
      throw new UnavailableError('cannot fetch the key set that verifies web tokens', { cause })
    }
    return principalOf(payload)
  }
}

/** Whether the key set could not be fetched or read: such an error says nothing about the token. */
function isOfKeySet(cause: errors.JOSEError): boolean {
  return cause instanceof errors.JWKSTimeout || cause instanceof errors.JWKSInvalid || cause.code === 'ERR_JOSE_GENERIC'
}

function principalOf({ sub, exp, [RULES_CLAIM]: rules }: JWTPayload): Principal {
  const isList = Array.isArray(rules) && rules.length <= RULES_MAX && rules.every((rule) => typeof rule === 'string')
  if (!isList)
    throw new AccessError(`this web token has no list of access rules in its claim ${JSON.stringify(RULES_CLAIM)}`)
  try {
    return {
      id: `jwt:${sub}`,
      name: String(sub),
      rules: (rules as string[]).map(parseRule),
      expiresAtMs: ((exp as number) + CLOCK_TOLERANCE_S) * 1000,
    }
  } catch (cause) {
    if (!(cause instanceof InvalidError)) throw cause
    throw new AccessError(`this web token has an invalid access rule: ${cause.message}`, { cause, hint: cause.hint })
  }
}

function isUrl(place: string): boolean {
  return /^https?:\/\//.test(place)
}

function keysOf(place: string): ReturnType<typeof createLocalJWKSet> | ReturnType<typeof createRemoteJWKSet> {
  if (isUrl(place)) return createRemoteJWKSet(new URL(place), { timeoutDuration: FETCH_TIMEOUT_MS })
  try {
    return createLocalJWKSet(JSON.parse(readFileSync(place, 'utf8')) as JSONWebKeySet)
  } catch (cause) {
    throw new InvalidError(`${place} is not a JSON Web Key Set: ${(cause as Error).message}`, { cause })
  }
}
