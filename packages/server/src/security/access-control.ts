import { AccessError, InvalidError, LeaseholdError } from '@leasehold/core'
import type { Logger } from '@leasehold/replica'
import type { AccessVerb, Authorize } from './authorize.js'
import type { AuditLog } from './audit-log.js'
import type { ClientLimits } from './client-limits.js'
import { RateLimiter } from './rate-limiter.js'
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
  /** Called in addition to all checks of this class. */
  readonly authorize?: Authorize | undefined
  readonly audit?: AuditLog | undefined
  readonly log: Logger
}

/** What a caller presents. */
export interface Credentials {
  /** API key or web token; '' when it sends none. */
  readonly key: string
  readonly remote: string
  /** Why its TLS certificate is rejected; undefined if it is valid, or none is required. */
  readonly certificateProblem?: string | undefined
}

/** An authenticated caller. Its principal is looked up again when the keys change. */
export interface Caller {
  readonly credentials: Credentials
  principal: Principal
  /** The generation of the keys in which the principal was looked up. */
  generation: number
}

/** How a request counts: renewals have a rate limit of their own, and releases are never limited. */
export type Cost = 'request' | 'renewal' | 'free'

const HINT = 'send a key as `Authorization: Bearer KEY`, or with the option apiKey; make one with: leasehold key create'

/** Authenticates callers and authorizes their requests. Every rejection is a typed error and a record in the audit log. */
export class AccessControl {
  readonly #options: AccessOptions
  readonly #jwt: JwtVerifier | undefined
  readonly #rateLimiter: RateLimiter
  readonly #stopWatching: readonly (() => void)[]
  /** Without limits and without an `authorize` option: anonymous callers need no further check. */
  readonly #isUnrestricted: boolean
  #ring: KeyRing | undefined
  #generation = 0

  /** @throws InvalidError for files that cannot be read */
  constructor(options: AccessOptions) {
    this.#options = options
    const { keys, jwt } = options
    this.#ring = keys === undefined ? undefined : new KeyRing(readKeys(keys))
    this.#jwt = jwt === undefined ? undefined : new JwtVerifier(jwt)
    this.#rateLimiter = new RateLimiter(options.limits ?? {})
    this.#isUnrestricted =
      options.authorize === undefined && Object.values(options.limits ?? {}).every((one) => one === undefined)
    const keySet = this.#jwt?.file
    this.#stopWatching = [
      ...(keys === undefined ? [] : [watchFiles([keys], () => this.#reload(keys))]),
      ...(keySet === undefined ? [] : [watchFiles([keySet], () => this.#reloadKeySet(keySet))]),
    ]
  }

  get requiresCredentials(): boolean {
    return this.#ring !== undefined || this.#jwt !== undefined
  }

  close(): void {
    for (const stop of this.#stopWatching) stop()
  }

  /** @throws AccessError, UnavailableError */
  async authenticate(credentials: Credentials): Promise<Caller> {
    const known = this.#identify(credentials)
    const principal = known instanceof Promise ? await this.#verifyAudited(known, credentials) : known
    return { credentials, principal, generation: this.#generation }
  }

  /**
   * Checks every permission that the request needs, and its rate limit. `names` empty: a handle proves the rest.
   * @throws AccessError, LimitError
   */
  authorize(caller: Caller, access: { verb: AccessVerb; names: readonly string[] }, cost: Cost): void {
    const { credentials } = caller
    try {
      const principal = this.#current(caller)
      if (principal === ANONYMOUS && this.#isUnrestricted) return
      if (cost !== 'free') this.#rateLimiter.spend(clientOf(principal, credentials.remote), cost)
      this.#checkRules(principal, access)
      this.#options.authorize?.({ ...access, apiKey: credentials.key, remote: credentials.remote })
    } catch (error) {
      this.#auditRejection(error, caller.principal.id, credentials, access)
      throw error
    }
  }

  /**
   * The error if a permission no longer holds that a watch or a waiting acquire depends on: its key was revoked, or its
   * web token expired. Undefined while it holds.
   */
  revocationOf(caller: Caller, access: { verb: AccessVerb; names: readonly string[] }): LeaseholdError | undefined {
    if (caller.principal === ANONYMOUS) return undefined
    try {
      this.#checkRules(this.#current(caller), access)
      return undefined
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      this.#auditRejection(error, caller.principal.id, caller.credentials, access)
      return error
    }
  }

  /** Whether the caller may read a name that was not in its request but belongs to the same hold or wait. */
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
        throw new AccessError(`the certificate of this client is rejected: ${certificateProblem}`, {
          hint: 'connect with a certificate from an authority that this service trusts',
        })
      }
      if (!this.requiresCredentials) return ANONYMOUS
      if (key === '') throw new AccessError('this service requires credentials, but none were sent', { hint: HINT })
      const principal = this.#ring?.find(key)
      if (principal !== undefined) return notExpired(principal)
      if (this.#jwt !== undefined && key.split('.').length === 3) return this.#jwt.verify(key)
      throw new AccessError('no such key', { hint: HINT })
    } catch (error) {
      this.#auditRejection(error, undefined, credentials)
      throw error
    }
  }

  async #verifyAudited(verifying: Promise<Principal>, credentials: Credentials): Promise<Principal> {
    try {
      return await verifying
    } catch (error) {
      this.#auditRejection(error, undefined, credentials)
      throw error
    }
  }

  /** The current principal of the caller: its key may have been revoked or changed, its token may have expired. */
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
      this.#options.log.info('reloaded the keys', { file, keys: this.#ring.size })
    } catch (error) {
      if (!(error instanceof InvalidError)) throw error
      this.#options.log.error('cannot load the changed keys: the previous ones stay in force', {
        file,
        why: error.message,
      })
    }
  }

  #reloadKeySet(file: string): void {
    try {
      this.#jwt?.reload()
      this.#options.log.info('reloaded the key set of web tokens', { file })
    } catch (error) {
      if (!(error instanceof InvalidError)) throw error
      this.#options.log.error('cannot load the changed key set: the previous one stays in force', {
        file,
        why: error.message,
      })
    }
  }

  #auditRejection(
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
