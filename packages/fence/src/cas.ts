import { InvalidError } from '@leasehold/core'
import { CasObject, type CasOptions } from './cas/object.js'
import type { CasStore } from './cas/store.js'
import { bodyOf, type Fenced, type Guard, type OpenOptions } from './common/guard.js'
import { describe, type GuardableHold } from './common/hold.js'
import { tracked } from './common/tracked.js'
import { checkWrites, singleTarget } from './common/single-target.js'

export { decodeEnvelope, type Envelope, encodeEnvelope } from './cas/envelope.js'
export { checkCasStore } from './cas/check-store.js'
export type { CasOptions } from './cas/object.js'
export type { CasStore, Versioned } from './cas/store.js'
export { ATTEMPTS_DEFAULT as CAS_ATTEMPTS_DEFAULT } from './common/attempts.js'
export type { CasPlatform } from './common/platform.js'

/** An open object under a lock. */
export interface CasTx {
  /** Returns the value that this unit last read or wrote; null if there is none. */
  get(): Uint8Array | null
  /** Writes a new value. Writes must not overlap. */
  put(value: Uint8Array | string): Promise<void>
  /** Deletes the value. The object stays, with its mark. */
  delete(): Promise<void>
}

/** A guard on objects of a store with a conditional write. */
export interface CasGuard extends Guard<CasTx> {
  /** Raises the mark: writes of earlier holds are rejected from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Opens and reads; null if there is no value. */
  read(hold: GuardableHold, options?: OpenOptions): Promise<Uint8Array | null>
  /** Writes without regard to the present value. */
  write(hold: GuardableHold, value: Uint8Array | string, options?: OpenOptions): Promise<void>
  /** Deletes the value. The object stays, with its mark. */
  delete(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Returns the present value, for readers without a lock. */
  latest(resource: string): Promise<Uint8Array | null>
}

/**
 * A guard for any store that can write an object on the condition that its version has not changed since it was read. Mark
 * and value are in one object, so the conditional write checks and stores both in one step. The object's key is the resource,
 * by default the lock's name.
 *
 * Every failure is typed: StaleTokenError and UnavailableError (nothing was written), UnknownOutcomeError (a write was sent
 * and reading the object did not reveal its outcome), InvalidError.
 *
 * @example
 * const guard = fence({
 *   read: async (key) => { … return { bytes, version } or null },
 *   write: async (key, bytes, version) => { … return true, or false if the version differs },
 * })
 * await guard.with(hold, async (object) => object.put(next(object.get())))
 */
export function fence<Version>(store: CasStore<Version>, options: CasOptions = {}): CasGuard {
  if (typeof store?.read !== 'function' || typeof store.write !== 'function') {
    throw new InvalidError('a guard with compare-and-set takes a store with read(key) and write(key, bytes, version)')
  }
  const opened = <T>(
    hold: GuardableHold,
    open: OpenOptions | undefined,
    writes: boolean,
    then: (object: CasObject<Version>) => Promise<T>,
  ): Promise<T> =>
    tracked(hold, async () => {
      const target = singleTarget(hold, options, open, 'object')
      if (writes) checkWrites(target)
      return await then(new CasObject(store, options, target, () => hold.assertHeld()))
    })

  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<CasTx>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<CasTx>) => T | Promise<T>,
    ): Promise<T> {
      const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
      return opened(hold, open, false, async (object) => {
        await object.open()
        const tx: CasTx = {
          get: () => object.value(),
          put: (value) => object.put(bytesOf(value), 'as read'),
          delete: () => object.put(null, 'as read'),
        }
        return await body(tx as Fenced<CasTx>)
      })
    },
    open: (hold, open) => opened(hold, open, false, (object) => object.open()),
    read: (hold, open) =>
      opened(hold, open, false, async (object) => {
        await object.open()
        return object.value()
      }),
    async write(hold, value, open) {
      const bytes = bytesOf(value)
      await opened(hold, open, true, (object) => object.put(bytes, 'whatever it was'))
    },
    delete: (hold, open) => opened(hold, open, true, (object) => object.put(null, 'whatever it was')),
    latest: (resource) => CasObject.latest(store, options, resource),
  }
}

function bytesOf(value: unknown): Uint8Array {
  if (typeof value === 'string') return new TextEncoder().encode(value)
  if (value instanceof Uint8Array) return value
  throw new InvalidError(`a value is text or bytes, not ${describe(value)}`)
}
