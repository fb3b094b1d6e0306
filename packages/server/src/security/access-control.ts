import { AccessError, InvalidError, LeaseholdError } from '@leasehold/core'
import type { Logger } from '@leasehold/replica'
import type { AccessVerb, Authorize } from './authorize.js'
import type { AuditLog } from './audit-log.js'
import { RateLimiter, type ClientLimits } from './rate-limiter.js'
import { JwtVerifier, type JwtOptions } from './jwt.js'
import { KeyRing, readKeys } from './keys.js'
import { ANONYMOUS, clientOf, type Principal } from './principal.js'
import { allows, hasVerb } from './rules.js'
import { watchFiles } from './watched-file.js'

export interface AccessOptions {
  /** File with the hashes of API keys; read again when it changes. */
  readonly keys?: string | undefined
  readonly jwt?: JwtOptions | undefined
  readonly limits?: ClientLimits | undefined
  /** Decides in addition to everything here. */
  readonly authorize?: Authorize | undefined
  readonly audit?: AuditLog | undefined
  readonly log: Logger
}

/** What a caller shows. */
export interface Credentials {
  /** API key or web token; '' when nothing. */
  readonly key: string
  readonly remote: string
  /** Why its TLS certificate is refused; undefined: it is good, or none is asked for. */
  readonly certificateProblem?: string | undefined
}

/** A caller that was let in. What it may do is looked up again when the keys have changed. */
export interface Caller {
  readonly credentials: Credentials
  principal: Principal
  /** Of the keys that the principal was looked up in. */
  generation: number
}

/** How a request counts: renewals have a budget of their own, and what only gives back is never refused for its number. */
export type Cost = 'request' | 'renewal' | 'free'

const HINT = 'send a key as `Authorization: Bearer KEY`, or with the option apiKey; make one with: leasehold key create'

/** Who may come in, and what they may do. Every refusal is a typed error and a line of the audit. */
export class AccessControl {
  readonly #options: AccessOptions
  readonly #jwt: JwtVerifier | undefined
  readonly #budgets: RateLimiter
  readonly #stopWatching: () => void
  /** Nobody is asked and nobody is limited: the shortest way. */
  readonly #mayAll: boolean
  #ring: KeyRing | undefined
  #generation = 0

  /** @throws InvalidError for files that cannot be read */
  constructor(options: AccessOptions) {
    this.#options = options
    const { keys, jwt } = options
    this.#ring = keys === undefined ? undefined : new KeyRing(readKeys(keys))
    this.#jwt = jwt === undefined ? undefined : new JwtVerifier(jwt)
    this.#budgets = new RateLimiter(options.limits ?? {})
    this.#mayAll =
      options.authorize === undefined && Object.values(options.limits ?? {}).every((one) => one === undefined)
    this.#stopWatching = keys === undefined ? () => {} : watchFiles([keys], () => this.#reload(keys))
  }

  /** Whether callers need credentials at all. */
  get asks(): boolean {
    return this.#ring !== undefined || this.#jwt !== undefined
  }

  close(): void {
    this.#stopWatching()
  }

  /** @throws AccessError, UnavailableError */
  async authenticate(credentials: Credentials): Promise<Caller> {
    const known = this.#identify(credentials)
    const principal = known instanceof Promise ? await this.#audited(known, credentials) : known
    return { credentials, principal, generation: this.#generation }
  }

  /**
   * Every right that the request needs must be there. `names` empty: the caller proves the rest by a handle.
   * @throws AccessError, LimitError
   */
  authorize(caller: Caller, access: { verb: AccessVerb; names: readonly string[] }, cost: Cost): void {
    const { credentials } = caller
    try {
      const principal = this.#current(caller)
      if (principal === ANONYMOUS && this.#mayAll) return
      if (cost !== 'free') this.#budgets.spend(clientOf(principal, credentials.remote), cost)
      this.#checkRules(principal, access)
      this.#options.authorize?.({ ...access, apiKey: credentials.key, remote: credentials.remote })
    } catch (error) {
      this.#refused(error, caller.principal.id, credentials, access)
      throw error
    }
  }

  /**
   * Why something that was allowed, and goes on, may not go on: a watch, or a wait. Keys are revoked and web tokens end
   * meanwhile. Undefined: it may.
   */
  ends(caller: Caller, access: { verb: AccessVerb; names: readonly string[] }): LeaseholdError | undefined {
    if (caller.principal === ANONYMOUS) return undefined
    try {
      this.#checkRules(this.#current(caller), access)
      return undefined
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      this.#refused(error, caller.principal.id, caller.credentials, access)
      return error
    }
  }

  /** Whether a name may be told to the caller beside one that it has asked for. */
  mayRead({ principal }: Caller, name: string): boolean {
    return principal === ANONYMOUS || allows(principal.rules, 'read', name)
  }

  #checkRules(principal: Principal, { verb, names }: { verb: AccessVerb; names: readonly string[] }): void {
    const missing =
      names.length === 0
        ? hasVerb(principal.rules, verb)
          ? undefined
          : 'anything'
        : names.find((name) => !allows(principal.rules, verb, name))
    if (missing === undefined) return
    const what = missing === '' ? 'the whole service' : missing === 'anything' ? missing : JSON.stringify(missing)
    throw new AccessError(`${principal.name || principal.id} may not ${verb} ${what}`, {
      code: 'forbidden',
      hint:
        missing === ''
          ? 'name a prefix that its rules cover, or use a key with a rule for *'
          : 'its rules do not cover it',
    })
  }

  #identify(credentials: Credentials): Principal | Promise<Principal> {
    const { key, certificateProblem } = credentials
    try {
      if (certificateProblem !== undefined) {
        throw new AccessError(`the certificate of this client is refused: ${certificateProblem}`, {
          hint: 'connect with a certificate of the authority that this service trusts',
        })
      }
      if (!this.asks) return ANONYMOUS
      if (key === '') throw new AccessError('this service asks for credentials, and none were sent', { hint: HINT })
      const principal = this.#ring?.find(key)
      if (principal !== undefined) return notExpired(principal)
      if (this.#jwt !== undefined && key.split('.').length === 3) return this.#jwt.verify(key)
      throw new AccessError('no such key', { hint: HINT })
    } catch (error) {
      this.#refused(error, undefined, credentials)
      throw error
    }
  }

  async #audited(verifying: Promise<Principal>, credentials: Credentials): Promise<Principal> {
    try {
      return await verifying
    } catch (error) {
      this.#refused(error, undefined, credentials)
      throw error
    }
  }

  /** What the caller is now: its key may have been revoked or changed, its token may have expired. */
  #current(caller: Caller): Principal {
    if (caller.generation !== this.#generation && caller.principal.id.startsWith('key:')) {
      const principal = this.#ring?.find(caller.credentials.key)
      if (principal === undefined) throw new AccessError('this key was revoked', { hint: HINT })
      caller.principal = principal
      caller.generation = this.#generation
    }
    return notExpired(caller.principal)
  }

  #reload(file: string): void {
    try {
      this.#ring = new KeyRing(readKeys(file))
      this.#generation++
      this.#options.log.info('the keys were read again', { file, keys: this.#ring.size })
    } catch (error) {
      if (!(error instanceof InvalidError)) throw error
      this.#options.log.error('the changed keys cannot be used: the former ones stay in force', {
        file,
        why: error.message,
      })
    }
  }

  #refused(
    error: unknown,
    principal: string | undefined,
    { remote }: Credentials,
    access?: { verb: AccessVerb; names: readonly string[] },
  ): void {
    if (!(error instanceof LeaseholdError)) return
    this.#options.audit?.write({
      event: 'refused',
      remote,
      ...(principal === undefined ? {} : { principal }),
      ...(access === undefined ? {} : { verb: access.verb, names: access.names.slice(0, 8) }),
      code: error.code,
      why: error.message,
    })
  }
}

function notExpired(principal: Principal): Principal {
  if (principal.expiresAtMs === undefined || Date.now() < principal.expiresAtMs) return principal
  throw new AccessError(`the credentials of ${principal.name || principal.id} have expired`, { hint: 'get new ones' })
}
