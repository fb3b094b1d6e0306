import { setTimeout as sleep } from 'node:timers/promises'
import { AbortedError, HoldLostError, NotHolderError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { type Context, pendingOf, rejection, until } from './context.js'

/** How holds live and end: leases, steals, delays, hand-overs, persistence, the end of the client. */
export function lives(context: Context): void {
  const { capabilities } = context.fixture

  describe('a lease', () => {
    it('without renewals ends: first here, then at the engine, and the next waiter gets the lock', async () => {
      const [one, two] = [context.client(), context.client()]
      const ttl = context.shortTtl
      const hold = await one.acquire('a', { ttl, renew: false })
      const waiting = two.acquire('a', { wait: context.expiryLimitMs })
      let lostFirst = false
      hold.signal.addEventListener('abort', () => {
        lostFirst = true
      })
      const next = await waiting
      expect(lostFirst).toBe(true)
      expect(hold.state).toBe('lost')
      expect(() => hold.assertHeld()).toThrow(HoldLostError)
      expect(await hold.lost).toMatchObject({ code: 'lost', reason: 'deadline' })
      expect(next.token).toBeGreaterThan(hold.token)
      expect(await hold.release()).toEqual({ released: false })
    })

    it('that is renewed lasts', async () => {
      const [one, two] = [context.client({ ttl: context.steadyTtlMs }), context.client()]
      const hold = await one.acquire('a')
      await sleep(context.steadyTtlMs * 2)
      expect(hold.state).toBe('held')
      expect(await two.tryAcquire('a')).toBeNull()
    })
  })

  it('a steal ends the hold against its will, with the reason', async () => {
    const [one, two] = [context.client(), context.client({ clientName: 'operator' })]
    const hold = await one.acquire('a')
    expect(await two.steal('a', { reason: 'stuck' })).toEqual({ stolen: 1 })
    const lost = await hold.lost
    expect(lost).toMatchObject({ reason: 'stolen' })
    expect(lost?.message).toContain('stuck')
    expect((await two.acquire('a')).token).toBeGreaterThan(hold.token)
    expect(await two.steal('nothing', { reason: 'x' })).toEqual({ stolen: 0 })
  })

  describe.runIf(capabilities.lockDelay)('a lock delay', () => {
    it('keeps a stolen lock blocked, and not a released one', async () => {
      const [one, two] = [context.client(), context.client()]
      const first = await one.acquire('a', { lockDelay: '3s' })
      await first.release()
      await one.acquire('a', { lockDelay: '3s', wait: 0 })
      const start = performance.now()
      await two.steal('a', { reason: 'test' })
      expect(await two.tryAcquire('a')).toBeNull()
      expect((await two.query({ name: 'a' })).delays).toHaveLength(1)
      await two.acquire('a', { wait: '40s' })
      expect(performance.now() - start).toBeGreaterThan(2_800)
    })

    it('keeps an expired lock blocked', async () => {
      const [one, two] = [context.client(), context.client()]
      const hold = await one.acquire('a', { lockDelay: '3s', ttl: context.shortTtl, renew: false })
      const waiting = two.acquire('a', { wait: context.expiryLimitMs + 10_000 })
      await until(async () => (await two.query({ name: 'a' })).held.length === 0, 'it expires', context.expiryLimitMs)
      const start = performance.now()
      expect((await waiting).token).toBeGreaterThan(hold.token)
      expect(performance.now() - start).toBeGreaterThan(1_000)
    })
  })

  describe.runIf(capabilities.portable)('a portable hold', () => {
    it('is handed over under a greater token; the old handle is lost', async () => {
      const [one, two] = [context.client(), context.client()]
      const hold = await one.acquire('a', { portable: true })
      const waiting = two.acquire('a')
      await until(async () => (await pendingOf(one, 'a')) === 1, 'a client waits')
      const text = hold.serialize()
      const moved = await two.adopt(text)
      expect(moved.token).toBeGreaterThan(hold.token)
      expect(await hold.lost).toMatchObject({ reason: 'moved' })
      await expect(one.adopt(text)).rejects.toBeInstanceOf(NotHolderError)
      await moved.release()
      expect((await waiting).token).toBeGreaterThan(moved.token)
    })

    it('needs its secret', async () => {
      const locks = context.client()
      const hold = await locks.acquire('a', { portable: true })
      const forged = hold.serialize().replace(/[0-9a-f]{32}$/, '0'.repeat(32))
      await expect(locks.adopt(forged)).rejects.toMatchObject({ code: /not-holder|forbidden/ })
      expect(hold.state).toBe('held')
    })
  })

  it.runIf(capabilities.persistent)('a persistent hold outlives its client, until it is released', async () => {
    const [one, two] = [context.client(), context.client()]
    const hold = await one.acquire('a', { persistent: true })
    const text = hold.serialize()
    await one.close()
    expect(await two.tryAcquire('a')).toBeNull()
    const row = (await two.query({ name: 'a' })).held[0]
    expect(row).toMatchObject({ persistent: true, id: hold.id })
    const adopted = await two.adopt(text)
    expect(adopted.token).toBeGreaterThan(hold.token)
    expect(await adopted.release()).toEqual({ released: true })
    expect((await two.acquire('a', { wait: 0 })).state).toBe('held')
  })

  describe('close', () => {
    it('gives everything back at once', async () => {
      const [one, two] = [context.client(), context.client()]
      const hold = await one.acquire('a')
      const waiting = two.acquire('a', { wait: '20s' })
      await until(async () => (await pendingOf(two, 'a')) === 1, 'it waits')
      await one.close()
      expect(hold.state).toBe('lost')
      expect(await hold.lost).toMatchObject({ reason: 'closed' })
      expect((await waiting).state).toBe('held')
      expect(await rejection(one.acquire('a'))).toBeInstanceOf(AbortedError)
    })

    it('with drain waits for holds that are released', async () => {
      const [one, two] = [context.client(), context.client()]
      const hold = await one.acquire('a')
      const closing = one.close({ drain: '20s' })
      await sleep(50)
      expect(hold.state).toBe('held')
      expect(await hold.release()).toEqual({ released: true })
      await closing
      expect((await two.acquire('a', { wait: '30s' })).state).toBe('held')
    })
  })
}
