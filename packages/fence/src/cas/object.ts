import { InvalidError, UnavailableError } from '@leasehold/core'
import { checkedAttempts, pauseAfter } from '../common/attempts.js'
import { unknownOutcome } from '../common/errors.js'
import type { GuardOptions } from '../common/guard.js'
import { checkResource, mismatch, staleToken, type Target } from '../common/resource.js'
import { checkWrites } from '../common/single-target.js'
import { decodeEnvelope, type Envelope, encodeEnvelope, isEnvelope } from './envelope.js'
import { isDefinite, isUnsent, read } from './errors.js'
import type { CasStore, Versioned } from './store.js'
import { type CasPlatform, platform } from '../common/platform.js'

export interface CasOptions extends GuardOptions {
  /** How often a change is attempted when others change the object concurrently, or answers are lost. Default 10. */
  readonly attempts?: number
  /** Adopts an object that was written without a guard, at its first opening. Default: such an object is rejected. */
  readonly adoptPlain?: boolean
  /** What the guard uses of the machine; for tests and simulations. */
  readonly platform?: Partial<CasPlatform>
}

/** What is known of the attempts of one change. */
interface Attempts {
  /** The error of an attempt that may have taken effect. */
  unknown: { readonly error: unknown } | undefined
  /**
   * An attempt of a write was rejected: because of another writer, or, if the store's client retries by itself, because our
   * own first attempt had succeeded. Only reading the object can tell.
   */
  rejected: boolean
}

/** One object of the store during one unit of work of a hold. */
export class CasObject<Version> {
  readonly #store: CasStore<Version>
  readonly #target: Target
  readonly #adoptPlain: boolean
  readonly #attempts: number
  readonly #platform: CasPlatform
  readonly #check: () => void
  /** The content that was last read or written. */
  #known: Envelope | undefined
  /** The version of that content, if the store reported it. */
  #version: { readonly is: Version | null } | undefined

  constructor(store: CasStore<Version>, options: CasOptions, target: Target, check: () => void) {
    this.#store = store
    this.#target = target
    this.#adoptPlain = options.adoptPlain === true
    this.#attempts = checkedAttempts(options.attempts)
    this.#platform = { ...platform, ...options.platform }
    this.#check = check
  }

  static async latest<V>(store: CasStore<V>, options: CasOptions, resource: string): Promise<Uint8Array | null> {
    const found = await read(store, checkResource(resource))
    if (found === null) return null
    if (options.adoptPlain === true && !isEnvelope(found.bytes)) return found.bytes
    return decodeEnvelope(found.bytes).value
  }

  /** Returns the value that was last read or written. */
  value(): Uint8Array | null {
    return this.#known?.value ?? null
  }

  /** Raises the mark, unless it has this token already. */
  async open(): Promise<void> {
    const { token } = this.#target
    await this.#keepKind()
    await this.#change((now) => (now.mark === token ? undefined : { ...now, mark: token }))
  }

  /**
   * Writes a value, or null for none. With `as read` it replaces only the value that this object has seen, so that two
   * concurrent writes of one hold do not overwrite each other silently.
   */
  async put(value: Uint8Array | null, over: 'as read' | 'whatever it was'): Promise<void> {
    checkWrites(this.#target)
    if (this.#known === undefined) await this.#keepKind()
    const before = over === 'as read' ? this.#known?.write : undefined
    const write = this.#platform.newId()
    await this.#change((now, attempts) => {
      if (before !== undefined && now.write !== before) throw twice(attempts)
      return { ...now, mark: this.#target.token, write, value }
    }, write)
  }

  /** For permits, the object of the bare resource stores the kind and nothing else. */
  async #keepKind(): Promise<void> {
    const { kind, resource, lock } = this.#target
    if (kind !== 'slot') return
    for (let n = 1; n <= this.#attempts; n++) {
      const found = await read(this.#store, resource)
      if (found !== null) {
        const problem = mismatch(this.#target, decodeEnvelope(found.bytes), 'permits')
        if (problem !== undefined) throw problem
        return
      }
      const bytes = encodeEnvelope({ mark: 0n, kind: 'permits', lock, write: '', value: null })
      this.#check()
      try {
        if (await this.#store.write(resource, bytes, null)) return
      } catch (error) {
        if (isDefinite(error)) throw error
      }
      await pauseAfter(n, this.#platform)
    }
    throw contended(resource, this.#attempts)
  }

  /**
   * Reads the object, decides, and writes on the condition that the version has not changed; repeats this if another writer
   * was faster. `decide` returns the new content, or undefined if no write is needed.
   *
   * An attempt whose answer is lost may still take effect while the version stays the same, so reading the object is not
   * enough. The retry is conditional on the same version, so the store accepts only one of the two attempts, and after either
   * of them the object contains `write`.
   */
  async #change(decide: (now: Envelope, attempts: Attempts) => Envelope | undefined, write?: string): Promise<void> {
    const attempts: Attempts = { unknown: undefined, rejected: false }
    for (let n = 1; n <= this.#attempts; n++) {
      const { now, version } = await this.#look(attempts)
      if (write !== undefined && now.write === write) return
      this.#reject(now, write !== undefined, attempts)
      const next = decide(now, attempts)
      if (next === undefined) return
      if (await this.#send(next, version, attempts)) return
      attempts.rejected = write !== undefined
      if (n < this.#attempts) await pauseAfter(n, this.#platform)
    }
    if (attempts.unknown !== undefined) throw unknownOutcome(attempts.unknown.error)
    throw contended(this.#target.mark, this.#attempts)
  }

  async #look(attempts: Attempts): Promise<{ now: Envelope; version: Version | null }> {
    const { mark: key, kind, lock } = this.#target
    if (this.#known !== undefined && this.#version !== undefined) return { now: this.#known, version: this.#version.is }
    let found: Versioned<Version> | null
    try {
      found = await read(this.#store, key)
    } catch (error) {
      if (attempts.unknown !== undefined) throw unknownOutcome(attempts.unknown.error)
      throw attempts.rejected ? unknownOutcome(error) : error
    }
    const plain = { mark: 0n, kind, lock, write: '' } as const
    let now: Envelope
    if (found === null) now = { ...plain, value: null }
    else if (this.#adoptPlain && !isEnvelope(found.bytes)) now = { ...plain, value: found.bytes }
    else now = decodeEnvelope(found.bytes)
    this.#known = now
    this.#version = { is: found?.version ?? null }
    return { now, version: this.#version.is }
  }

  /** Returns true if the store confirmed the write. */
  async #send(next: Envelope, version: Version | null, attempts: Attempts): Promise<boolean> {
    const { unknown } = attempts
    try {
      this.#check()
    } catch (error) {
      throw unknown === undefined ? error : unknownOutcome(error)
    }
    this.#version = undefined
    try {
      const answer = await this.#store.write(this.#target.mark, encodeEnvelope(next), version)
      if (answer === false) return false
      this.#known = next
      if (typeof answer === 'object') this.#version = { is: answer.version }
      return true
    } catch (error) {
      if (isUnsent(error) || isDefinite(error)) throw unknown === undefined ? error : unknownOutcome(unknown.error)
      attempts.unknown = { error }
      return false
    }
  }

  #reject(now: Envelope, isWrite: boolean, attempts: Attempts): void {
    const { kind, mark, token } = this.#target
    const problem = mismatch(this.#target, now, kind)
    if (problem !== undefined) throw problem
    if (now.mark <= token) return
    // An earlier attempt of this write may have been accepted and then overwritten by the later holder.
    if (isWrite && attempts.unknown !== undefined) throw unknownOutcome(attempts.unknown.error)
    throw staleToken(mark, token, now.mark)
  }
}

function twice({ unknown }: Attempts): Error {
  if (unknown !== undefined) return unknownOutcome(unknown.error)
  return new InvalidError('this hold writes the object twice concurrently', { hint: 'wait for the first write' })
}

function contended(key: string, attempts: number): UnavailableError {
  return new UnavailableError(`the object ${JSON.stringify(key)} was changed by others during ${attempts} attempts`, {
    hint: 'nothing was written; the same call may succeed later',
  })
}
