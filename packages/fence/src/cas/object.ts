import { InvalidError, UnavailableError } from '@leasehold/core'
import type { GuardOptions } from '../common/guard.js'
import { describe } from '../common/hold.js'
import { checkResource, mismatch, staleToken, type Target } from '../common/resource.js'
import { checkWrites } from '../common/single-target.js'
import { decodeEnvelope, type Envelope, encodeEnvelope, isEnvelope } from './envelope.js'
import { isDefinite, isUnsent, read, unknownOutcome } from './errors.js'
import { type CasPlatform, platform } from '../common/platform.js'

/** An object as it was read. */
export interface Versioned<Version> {
  readonly bytes: Uint8Array
  /** Whatever the store compares: an ETag, a generation, a revision. */
  readonly version: Version
}

/** A store with a conditional write: all that a guard needs of it. */
export interface CasStore<Version> {
  /** The object as it is now (never from a cache or an old replica); null when there is none. */
  read(key: string): Promise<Versioned<Version> | null>
  /**
   * Writes the object if its version is still `version`; null: if there is none. Answers the new version when it was written
   * (or true, where the store does not tell it), and false when the version is another one. Throws UnavailableError when
   * nothing can have been written, and other typed errors for what is wrong for good; after UnknownOutcomeError and every
   * untyped error the guard reads again to learn what has happened.
   */
  write(key: string, bytes: Uint8Array, version: Version | null): Promise<boolean | { readonly version: Version }>
}

export interface CasOptions extends GuardOptions {
  /** How often a change is tried when others change the object at the same time, or answers get lost. Default 10. */
  readonly attempts?: number
  /** Takes over an object that was written without a guard, at its first opening. Default: such an object is refused. */
  readonly adoptPlain?: boolean
  /** For tests and simulations: what the guard uses of the machine. */
  readonly platform?: Partial<CasPlatform>
}

export const CAS_ATTEMPTS_DEFAULT = 10
const ATTEMPTS_MAX = 1_000
/** The pause before the n-th repetition is random below `min(2^n × PAUSE_FIRST_MS, PAUSE_MAX_MS)`. */
const PAUSE_FIRST_MS = 10
const PAUSE_MAX_MS = 1_000

/** What has become of the attempts of one change. */
interface Attempts {
  /** The error of an attempt that may have taken effect. */
  unknown: { readonly error: unknown } | undefined
  /**
   * An attempt of a write was refused: that of another, or, where the store's client repeats by itself, the repetition of
   * our own. Only reading can tell.
   */
  refused: boolean
}

/** One object of the store while one hold works on it. */
export class CasObject<Version> {
  readonly #store: CasStore<Version>
  readonly #target: Target
  readonly #adoptPlain: boolean
  readonly #attempts: number
  readonly #platform: CasPlatform
  readonly #check: () => void
  /** The content as it was read or written last. */
  #known: Envelope | undefined
  /** The version of that content, where the store has told it. */
  #version: { readonly is: Version | null } | undefined

  constructor(store: CasStore<Version>, options: CasOptions, target: Target, check: () => void) {
    const { attempts = CAS_ATTEMPTS_DEFAULT } = options
    if (!Number.isInteger(attempts) || attempts < 1 || attempts > ATTEMPTS_MAX) {
      throw new InvalidError(`attempts is a number between 1 and ${ATTEMPTS_MAX}, not ${describe(attempts)}`)
    }
    this.#store = store
    this.#target = target
    this.#adoptPlain = options.adoptPlain === true
    this.#attempts = attempts
    this.#platform = { ...platform, ...options.platform }
    this.#check = check
  }

  static async latest<V>(store: CasStore<V>, options: CasOptions, resource: string): Promise<Uint8Array | null> {
    const found = await read(store, checkResource(resource))
    if (found === null) return null
    if (options.adoptPlain === true && !isEnvelope(found.bytes)) return found.bytes
    return decodeEnvelope(found.bytes).value
  }

  /** What was read or written last. */
  value(): Uint8Array | null {
    return this.#known?.value ?? null
  }

  /** Raises the mark, unless it is there already. */
  async open(): Promise<void> {
    const { token } = this.#target
    await this.#keepKind()
    await this.#change((now) => (now.mark === token ? undefined : { ...now, mark: token }))
  }

  /**
   * Writes a value, or null for none. With `as read` only over the value that this object has seen: then two writes of one
   * hold at the same time do not overwrite each other in silence.
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

  /** The bare resource of permits keeps the kind, and nothing else. */
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
      await this.#pause(n)
    }
    throw contended(resource, this.#attempts)
  }

  /**
   * Reads, decides, writes on the condition of what was read; again when somebody else was faster. `decide` answers the new
   * content, or undefined when everything is as it should be.
   *
   * An attempt whose answer is lost may still take effect, as long as the version has not moved. So reading again is not
   * enough; but the repetition is on the same version, and only one of the two can be accepted: whichever it was, `write` is
   * in the object then.
   */
  async #change(decide: (now: Envelope, attempts: Attempts) => Envelope | undefined, write?: string): Promise<void> {
    const attempts: Attempts = { unknown: undefined, refused: false }
    for (let n = 1; n <= this.#attempts; n++) {
      const { now, version } = await this.#look(attempts)
      if (write !== undefined && now.write === write) return
      this.#refuse(now, write !== undefined, attempts)
      const next = decide(now, attempts)
      if (next === undefined) return
      if (await this.#send(next, version, attempts)) return
      attempts.refused = write !== undefined
      if (n < this.#attempts) await this.#pause(n)
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
      throw attempts.refused ? unknownOutcome(error) : error
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

  /** True when the store has said so. */
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

  #refuse(now: Envelope, isWrite: boolean, attempts: Attempts): void {
    const { kind, mark, token } = this.#target
    const problem = mismatch(this.#target, now, kind)
    if (problem !== undefined) throw problem
    if (now.mark <= token) return
    // An earlier attempt of this write may have been accepted, and overwritten by the later holder.
    if (isWrite && attempts.unknown !== undefined) throw unknownOutcome(attempts.unknown.error)
    throw staleToken(mark, token, now.mark)
  }

  async #pause(n: number): Promise<void> {
    const limitMs = Math.min(2 ** n * PAUSE_FIRST_MS, PAUSE_MAX_MS)
    await this.#platform.pause(this.#platform.random() * limitMs)
  }
}

function twice({ unknown }: Attempts): Error {
  if (unknown !== undefined) return unknownOutcome(unknown.error)
  return new InvalidError('this hold writes the object twice at the same time', { hint: 'wait for the first write' })
}

function contended(key: string, attempts: number): UnavailableError {
  return new UnavailableError(`the object ${JSON.stringify(key)} was changed by others during ${attempts} attempts`, {
    hint: 'nothing was written; the same call may succeed later',
  })
}
