import { setTimeout as sleep } from 'node:timers/promises'
import { UnavailableError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { type Context, pendingOf, rejection, until } from './context.js'

/** What a broken line between client and engine must not do. */
export function faults(context: Context): void {
  const line = () => {
    const { line: found } = context.running
    if (found === undefined) throw new Error('no line')
    return found
  }

  describe('a line that breaks', () => {
    it('and a grant whose answer was lost: asked again, and taken once', async () => {
      const [locks, other] = [context.lineClient(), context.client()]
      await (await locks.acquire('warm')).release()
      line().mute()
      const waiting = locks.acquire('a', { wait: '30s' })
      await sleep(300)
      line().open()
      const hold = await waiting
      expect((await other.query({ name: 'a' })).held.map((row) => row.id)).toEqual([hold.id])
      expect(await pendingOf(other, 'a')).toBe(0)
      await hold.release()
      expect((await other.acquire('a', { wait: '30s' })).token).toBeGreaterThan(hold.token)
    })

    it('and a release whose answer was lost', async () => {
      const [locks, other] = [context.lineClient(), context.client()]
      const hold = await locks.acquire('a')
      line().mute()
      const releasing = hold.release()
      await sleep(300)
      line().open()
      expect(await releasing).toEqual({ released: true })
      expect((await other.acquire('a', { wait: '30s' })).token).toBeGreaterThan(hold.token)
    })

    it.runIf(context.fixture.capabilities.registers)('and a write whose answer was lost: written once', async () => {
      const [locks, other] = [context.lineClient(), context.client()]
      const register = locks.register('r')
      await register.put(0)
      line().mute()
      const writing = register.put(1)
      await sleep(300)
      line().open()
      const { version } = await writing
      expect(await other.register('r').get()).toMatchObject({ value: 1, version })
    })

    it('in a wait: the queue is kept, and the grant comes', async () => {
      const [locks, other] = [context.lineClient(), context.client()]
      const holder = await other.acquire('a')
      const waiting = locks.acquire('a', { wait: '60s' })
      await until(async () => (await pendingOf(other, 'a')) === 1, 'it waits')
      line().shut()
      await sleep(500)
      await holder.release()
      await sleep(300)
      line().open()
      expect((await waiting).token).toBeGreaterThan(holder.token)
    })

    it('reports unreachable, and nothing about the holder', async () => {
      const locks = context.lineClient({ connectTimeout: '1s' })
      line().shut()
      expect(await rejection(locks.acquire('a', { wait: '1500ms' }))).toBeInstanceOf(UnavailableError)
      expect(await rejection(locks.query({ name: 'a' }))).toBeInstanceOf(UnavailableError)
    })

    it('and stays broken: the hold is lost here before the engine gives it to others', async () => {
      const [locks, other] = [context.lineClient({ ttl: context.steadyTtlMs }), context.client()]
      const hold = await locks.acquire('a')
      const waiting = other.acquire('a', { wait: context.expiryLimitMs * 2 })
      await until(async () => (await pendingOf(other, 'a')) === 1, 'it waits')
      line().shut()
      const next = await waiting
      expect(hold.state).toBe('lost')
      expect(next.token).toBeGreaterThan(hold.token)
    })

    it('for longer than the lease of a waiter: it waits again, and never receives a grant to its dead session', async () => {
      const [locks, other] = [context.lineClient({ ttl: context.steadyTtlMs }), context.client()]
      const holder = await other.acquire('a')
      const waiting = locks.acquire('a', { wait: '60s' })
      await until(async () => (await pendingOf(other, 'a')) === 1, 'it waits')
      line().shut()
      await until(async () => (await pendingOf(other, 'a')) === 0, 'its session ends', context.expiryLimitMs)
      await holder.release()
      line().open()
      const hold = await waiting
      expect(hold.state).toBe('held')
      expect((await other.query({ name: 'a' })).held.map((row) => row.id)).toEqual([hold.id])
    })
  })
}
