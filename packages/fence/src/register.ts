import type { Hold, Register } from '@leasehold/client'
import { InvalidError } from '@leasehold/core'
import { bodyOf, type Fenced, type Guard, type OpenOptions } from './common/guard.js'
import type { GuardableHold } from './common/hold.js'
import { tracked } from './common/tracked.js'
import { openingOf } from './common/resource.js'

/** What a guard needs of the client's `Register`. */
export type GuardableRegister = Pick<Register, 'key' | 'get' | 'put' | 'delete'>

/** A register under a lock. */
export interface RegisterTx<Value> {
  get(): Promise<Value | undefined>
  put(value: Value): Promise<bigint>
  delete(): Promise<void>
}

/**
 * A guard for one of Leasehold's own registers. The service accepts a write only while the exclusive hold exists, so a get
 * followed by a put is one unit without a mark.
 *
 * @example
 * const guard = fence<Flags>(locks.register('config/flags'))
 * await guard.with(hold, async (register) => register.put({ ...(await register.get()), dark: true }))
 */
export function fence<Value = unknown>(register: GuardableRegister): Guard<RegisterTx<Value>> {
  if (typeof register?.put !== 'function' || typeof register.get !== 'function') {
    throw new InvalidError('a guard for a register takes a register: locks.register(key)')
  }
  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<RegisterTx<Value>>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<RegisterTx<Value>>) => T | Promise<T>,
    ): Promise<T> {
      const { options, body } = bodyOf(optionsOrBody, maybeBody)
      return tracked(hold, async () => await body(openRegister(register, hold as Hold, options)))
    },
  }
}

function openRegister<Value>(register: GuardableRegister, hold: Hold, options: OpenOptions): Fenced<RegisterTx<Value>> {
  const { targets } = openingOf(hold, { resource: (_hold, lock) => lock }, options)
  const [target, ...more] = targets
  if (target === undefined || more.length > 0) {
    throw new InvalidError('a hold of several locks: which one fences this register?', { hint: 'pass { lock }' })
  }
  if (!target.writes || target.kind === 'slot') {
    throw new InvalidError('a register is fenced by an exclusive hold', { code: 'mismatch' })
  }
  hold.assertHeld()
  const fence = { fence: hold, lock: target.lock }
  let seen: { readonly version: bigint; readonly lock: string | undefined } | null | 'unknown' = 'unknown'
  // The first fenced write of a register is conditional on the version that was read. Afterwards the lock is condition enough.
  const condition = async (): Promise<{ ifVersion?: bigint }> => {
    const known = seen === 'unknown' ? await register.get() : seen
    return known?.lock === undefined ? { ifVersion: known?.version ?? 0n } : {}
  }
  const tx: RegisterTx<Value> = {
    async get() {
      const entry = await register.get()
      seen = entry
      return entry?.value as Value | undefined
    },
    async put(value) {
      const when = await condition()
      hold.assertHeld()
      const { version } = await register.put(value, { ...fence, ...when })
      seen = { version, lock: target.lock }
      return version
    },
    async delete() {
      const when = await condition()
      hold.assertHeld()
      await register.delete({ ...fence, ...when })
      seen = null
    },
  }
  return tx as Fenced<RegisterTx<Value>>
}
