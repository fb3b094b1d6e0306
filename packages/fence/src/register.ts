import { InvalidError } from '@leasehold/core'
import { bodyOf, type Fenced, type Guard, type GuardableHold, marksOf, type OpenOptions, track } from './hold.js'

/** What a guard needs of a register: every `Register` of the client fits. */
export interface GuardableRegister<Value, Hold> {
  readonly key: string
  get(): Promise<{ readonly value: Value; readonly version: bigint; readonly lock?: string | undefined } | undefined>
  put(value: Value, options: { fence: Hold; ifVersion?: bigint }): Promise<bigint>
  delete(options: { fence: Hold; ifVersion?: bigint }): Promise<void>
}

/** A register under a lock: its reads and writes while the hold lasts. */
export interface RegisterTx<Value> {
  get(): Promise<Value | undefined>
  put(value: Value): Promise<bigint>
  delete(): Promise<void>
}

/**
 * A guard on one of Leasehold's own registers. The service accepts a write only while the exclusive hold exists, so no
 * mark is needed: get, then put, is one unit.
 *
 * @example
 * const guard = fence(locks.register('config/flags'))
 * await guard.with(hold, async (register) => register.put({ ...(await register.get()), dark: true }))
 */
export function fence<Value, Hold extends GuardableHold>(
  register: GuardableRegister<Value, Hold>,
): Guard<RegisterTx<Value>> {
  if (typeof register?.put !== 'function') throw new InvalidError('fence(register) takes a register: locks.register(key)')
  const open = (hold: GuardableHold, options: OpenOptions): Fenced<RegisterTx<Value>> => {
    const marks = marksOf(hold, { resource: () => register.key }, options)
    if (!marks.every((mark) => mark.mayWrite && mark.kind === 'lock')) {
      throw new InvalidError('a register is fenced by an exclusive hold', { code: 'mismatch' })
    }
    hold.assertHeld()
    const fenceWith = hold as Hold
    // The first fenced write of a register says which version it replaces; from then on the lock says enough.
    const condition = async (): Promise<{ ifVersion?: bigint }> => {
      const known = await register.get()
      if (known?.lock !== undefined) return {}
      return { ifVersion: known?.version ?? 0n }
    }
    const tx: RegisterTx<Value> = {
      get: async () => (await register.get())?.value,
      put: async (value) => register.put(value, { fence: fenceWith, ...(await condition()) }),
      delete: async () => register.delete({ fence: fenceWith, ...(await condition()) }),
    }
    return tx as Fenced<RegisterTx<Value>>
  }
  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<RegisterTx<Value>>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<RegisterTx<Value>>) => T | Promise<T>,
    ): Promise<T> {
      const { options, body } = bodyOf(optionsOrBody, maybeBody)
      return track(hold, (async () => await body(open(hold, options)))())
    },
    enter: async (_tx, hold, options = {}) => open(hold, options),
  }
}
