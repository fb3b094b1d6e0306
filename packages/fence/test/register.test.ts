import { createLocks, type Locks } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fence } from '../src/register.js'

describe('the guard of a register', () => {
  let locks: Locks
  beforeEach(() => {
    locks = createLocks(`memory:fence-register-${Math.random()}`)
  })
  afterEach(() => locks.close())

  it('makes get and put one unit under the hold', async () => {
    const guard = fence(locks.register('config/flags'))
    const raise = () =>
      locks.request('config', (hold) =>
        guard.with(hold, async (register) => {
          const old = (await register.get()) as { n: number } | undefined
          await register.put({ n: (old?.n ?? 0) + 1 })
        }),
      )
    await Promise.all(Array.from({ length: 10 }, raise))
    expect((await locks.register('config/flags').get())?.value).toEqual({ n: 10 })
    expect((await locks.register('config/flags').get())?.lock).toBe('config')
  })

  it('rejects a hold that has ended, even if its process does not know yet', async () => {
    const register = locks.register('config/flags')
    const guard = fence(register)
    const first = await locks.acquire('config')
    await guard.with(first, (tx) => tx.put('by the first'))
    await locks.steal('config', { reason: 'test' })
    const second = await locks.acquire('config')
    await guard.with(second, (tx) => tx.put('by the second'))
    await expect(guard.with(first, (tx) => tx.put('late'))).rejects.toMatchObject({ code: 'lost' })
    const unaware = new Proxy(first, {
      get(hold, property) {
        if (property === 'assertHeld') return () => {}
        const value = Reflect.get(hold, property, hold) as unknown
        return typeof value === 'function' ? value.bind(hold) : value
      },
    })
    const late = register.put('late', { fence: unaware, lock: 'config' })
    await expect(late).rejects.toMatchObject({ code: expect.stringMatching(/lost|not-holder/) })
    expect((await register.get())?.value).toBe('by the second')
    await second.release()
  })

  it('does not overwrite an unfenced write that followed its read', async () => {
    const register = locks.register('config/flags')
    await register.put('old', { ifVersion: 0n })
    const hold = await locks.acquire('config')
    const unit = fence(register).with(hold, async (tx) => {
      const seen = await tx.get()
      await register.put('in between')
      return tx.put(`${String(seen)} and more`)
    })
    await expect(unit).rejects.toMatchObject({ code: 'version-conflict' })
    await hold.release()
  })

  it('rejects shared holds, permits, another lock, and the wrong lock of several', async () => {
    const register = locks.register('config/flags')
    const guard = fence(register)
    await locks.request('config', (hold) => guard.with(hold, (tx) => tx.put(1)))
    await locks.request('config', { mode: 'shared' }, async (hold) => {
      await expect(guard.with(hold, (tx) => tx.put(2))).rejects.toMatchObject({ code: 'mismatch' })
    })
    await locks.request('gpu', { permits: 2 }, async (hold) => {
      await expect(guard.with(hold, (tx) => tx.put(2))).rejects.toMatchObject({ code: 'mismatch' })
    })
    await locks.request('other', async (hold) => {
      await expect(guard.with(hold, (tx) => tx.put(2))).rejects.toMatchObject({ code: 'mismatch' })
    })
    await using both = await locks.acquire(['config', 'other'])
    await expect(guard.with(both, (tx) => tx.put(2))).rejects.toMatchObject({ code: 'invalid' })
    await guard.with(both, { lock: 'config' }, (tx) => tx.put(3))
    expect((await register.get())?.value).toBe(3)
    await guard.with(both, { lock: 'config' }, (tx) => tx.delete())
    expect(await register.get()).toBe(null)
    expect(() => fence({} as never)).toThrow()
  })
})
