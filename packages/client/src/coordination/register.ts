import { checkName, InvalidError, LimitError } from '@leasehold/core'
import { requireAbility } from '../capabilities.js'
import type { Engine, EngineRegister, EngineSession } from '../engine.js'
import { liveState, type LiveStateContext } from './live-state.js'
import { type Hold, holdInternals } from '../hold/hold.js'
import { base64Of, type Jsonable, jsonable } from '../json.js'
import { LeaseKeeper } from '../lease/lease-keeper.js'
import { checkFlag, checkKeys, describe, signalOf } from '../options.js'
import type { WatchEvent } from '../namespace-view.js'

/** One version of a register. */
export interface RegisterEntry extends Jsonable {
  readonly version: bigint
  readonly bytes: Uint8Array
  /** The lock that fences the register, if any. */
  readonly lock: string | undefined
  /** The bytes as JSON. @throws InvalidError when they are no JSON */
  readonly value: unknown
}

export interface PutOptions {
  /** Writes only if the register has this version; `0n`: only if it does not exist. */
  readonly ifVersion?: bigint
  /** Writes only while this exclusive hold exists. */
  readonly fence?: Hold
  /** The lock of `fence`, if it has several. Default: its first exclusive one. */
  readonly lock?: string
}

export interface RegisterContext extends LiveStateContext {
  readonly engine: Engine
  readonly timeoutMs: number
  fullName(name: string): string
  shortName(full: string): string
  session(): Promise<EngineSession>
  /** The present cursor. */
  position(): Promise<string>
}

type WriteTerms = Omit<Parameters<EngineSession['delete']>[0], 'key'>

const VERSION_MAX = 2n ** 63n - 1n

/**
 * A small versioned value kept by the service itself.
 *
 * @example
 * const flags = locks.register('config/flags')
 * const entry = await flags.get()
 * await flags.put({ dark: true }, { ifVersion: entry?.version ?? 0n })
 */
export class Register {
  readonly key: string
  readonly #context: RegisterContext

  /** @internal Registers come from `locks.register(key)`. */
  constructor(context: RegisterContext, key: string) {
    this.#context = context
    this.key = checkName(key)
    checkName(context.fullName(key))
  }

  /** The register's value, or null if it does not exist. Linearizable unless `stale`. */
  async get(options: { stale?: boolean } = {}): Promise<RegisterEntry | null> {
    checkKeys(options, ['stale'], 'get')
    const found = await this.#context.engine.getRegister(this.#fullKey, {
      stale: checkFlag(options.stale, 'stale'),
      timeoutMs: this.#context.timeoutMs,
    })
    return found ? entryOf(this.key, found, (lock) => this.#context.shortName(lock)) : null
  }

  /**
   * Writes bytes as they are, and everything else as JSON.
   * @throws VersionConflictError, HoldLostError, NotHolderError (the fence has ended), InvalidError, LimitError
   */
  async put(value: unknown, options: PutOptions = {}): Promise<{ version: bigint }> {
    checkKeys(options, ['ifVersion', 'fence', 'lock'], 'put')
    const bytes = bytesOf(value)
    const put = (session: EngineSession, terms: WriteTerms) =>
      session.put({ key: this.#fullKey, value: bytes, ...terms })
    return { version: await this.#write(options, put) }
  }

  /** @throws VersionConflictError, HoldLostError, NotHolderError, InvalidError */
  async delete(options: PutOptions = {}): Promise<void> {
    checkKeys(options, ['ifVersion', 'fence', 'lock'], 'delete')
    await this.#write(options, (session, terms) => session.delete({ key: this.#fullKey, ...terms }))
  }

  /**
   * The value now, and again after every change; null while it does not exist. Changes that follow each other quickly
   * may be shown as one.
   */
  async *watch(options: { signal?: AbortSignal } = {}): AsyncGenerator<RegisterEntry | null, void, void> {
    checkKeys(options, ['signal'], 'watch')
    yield* liveState<RegisterEntry | null>(this.#context, this.key, signalOf(options.signal), {
      read: async () => {
        const at = await this.#context.position()
        return { now: await this.get(), at }
      },
      next: (event, shown) => this.#next(event, shown),
      same: isSameVersion,
    })
  }

  /** The value after an event; undefined: unchanged. */
  async #next(event: WatchEvent, shown: RegisterEntry | null): Promise<RegisterEntry | null | undefined> {
    if ((event.kind !== 'put' && event.kind !== 'deleted') || event.key !== this.key) return undefined
    if (event.kind === 'put' && event.version === shown?.version) return undefined
    const next = await this.get()
    return isSameVersion(next, shown) ? undefined : next
  }

  get #fullKey(): string {
    return this.#context.fullName(this.key)
  }

  /** A fenced write needs the session of its hold; any other write a session with request numbers left. */
  async #write<T>(options: PutOptions, send: (session: EngineSession, terms: WriteTerms) => Promise<T>): Promise<T> {
    for (;;) {
      const { session, ...terms } = await this.#terms(options)
      const isFree = !('fence' in terms)
      // Other requests may have taken the session's last numbers since it was chosen.
      if (isFree && session.congested) continue
      try {
        return await send(session, terms)
      } catch (error) {
        if (!isFree || !(error instanceof LimitError) || !session.congested) throw error
      }
    }
  }

  async #terms(options: PutOptions) {
    const { ifVersion, fence, lock } = options
    if (ifVersion !== undefined) checkVersion(ifVersion)
    const timeoutMs = this.#context.timeoutMs
    const version = ifVersion === undefined ? {} : { ifVersion }
    if (fence === undefined) {
      if (lock !== undefined) throw new InvalidError('lock goes with fence: name the hold as well')
      return { session: await this.#context.session(), timeoutMs, ...version }
    }
    if (typeof fence !== 'object' || fence === null || !(holdInternals in fence)) {
      throw new InvalidError(`fence is a hold, not ${describe(fence)}`)
    }
    requireAbility(this.#context.engine, 'fenced registers')
    fence.assertHeld()
    const internals = fence[holdInternals]
    const { host } = internals
    // The session of the hold lives as long as the hold: no other has to be opened.
    const session = host instanceof LeaseKeeper && host.live ? host.session : await this.#context.session()
    return { session, timeoutMs, ...version, fence: internals.fence(lock) }
  }
}

function isSameVersion(one: RegisterEntry | null, other: RegisterEntry | null): boolean {
  return one?.version === other?.version
}

function checkVersion(version: unknown): void {
  if (typeof version === 'bigint' && version >= 0n && version <= VERSION_MAX) return
  throw new InvalidError(
    `ifVersion is a version as bigint, such as 7n, or 0n for "must not exist", not ${describe(version)}`,
  )
}

function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new InvalidError('the value cannot be written as JSON', { cause: error, hint: 'put bytes instead' })
  }
  if (text === undefined)
    throw new InvalidError(`a register cannot keep ${describe(value)}`, { hint: 'delete() it instead' })
  return new TextEncoder().encode(text)
}

function entryOf(key: string, found: EngineRegister, shortName: (full: string) => string): RegisterEntry {
  const entry = {
    version: found.version,
    bytes: found.value,
    lock: found.lock === undefined ? undefined : shortName(found.lock),
    get value(): unknown {
      try {
        return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(found.value))
      } catch (error) {
        throw new InvalidError(`the register ${JSON.stringify(key)} holds no JSON`, {
          cause: error,
          hint: 'read its bytes instead',
        })
      }
    },
  }
  return jsonable(entry, () => {
    const { version, lock } = entry
    return { version: version.toString(), lock, ...contentOf(entry) }
  })
}

/** The value, or the bytes as base64 if they are no JSON. */
function contentOf(entry: { readonly bytes: Uint8Array; readonly value: unknown }): Record<string, unknown> {
  try {
    return { value: entry.value }
  } catch {
    return { bytes: base64Of(entry.bytes) }
  }
}
