import { BusyError, InvalidError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { type Context, pendingOf, until } from './context.js'

/** Which holds exclude each other, the order of grants, and their tokens. */
export function grants(context: Context): void {
  const { capabilities } = context.fixture
  const able = (mode: 'shared' | 'permits') => capabilities.modes.includes(mode)

  describe('an exclusive lock', () => {
    it('has one holder; others are told that it is busy', async () => {
      const [one, two] = [context.client({ clientName: 'worker-7' }), context.client()]
      const hold = await one.acquire('a')
      expect(await two.tryAcquire('a')).toBeNull()
      await expect(two.acquire('a', { wait: 0 })).rejects.toBeInstanceOf(BusyError)
      expect((await two.acquire('b', { wait: 0 })).state).toBe('held')
      expect(await hold.release()).toEqual({ released: true })
      expect((await two.acquire('a', { wait: 0 })).token).toBeGreaterThan(hold.token)
    })

    it('is not re-entrant: two tasks of one client are strangers', async () => {
      const locks = context.client()
      await locks.acquire('a')
      expect(await locks.tryAcquire('a')).toBeNull()
    })

    it('is served first come, first served', async () => {
      const holder = await context.client().acquire('a')
      const order: number[] = []
      const waiters: Promise<void>[] = []
      const seen = context.client()
      for (let i = 0; i < 5; i++) {
        waiters.push(
          context.client().request('a', () => {
            order.push(i)
          }),
        )
        await until(async () => (await pendingOf(seen, 'a')) === i + 1, `waiter ${i} is queued`)
      }
      await holder.release()
      await Promise.all(waiters)
      expect(order).toEqual([0, 1, 2, 3, 4])
    })

    it('keeps its order of tokens when the name is long forgotten, over many clients at once', async () => {
      const clients = [context.client(), context.client(), context.client()]
      const tokens: bigint[] = []
      let inside = 0
      await Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          clients[i % 3]?.request('a', (hold) => {
            expect(++inside).toBe(1)
            tokens.push(hold.token)
            inside--
          }),
        ),
      )
      expect(tokens).toHaveLength(30)
      for (const [i, token] of tokens.entries()) if (i > 0) expect(token).toBeGreaterThan(tokens[i - 1] as bigint)
      const again = await context.client().acquire('a')
      expect(again.token).toBeGreaterThan(tokens.at(-1) as bigint)
    })
  })

  describe.runIf(able('shared'))('a shared lock', () => {
    it('has many holders with one token, and the next writer a greater one', async () => {
      const locks = context.client()
      const before = await locks.acquire('a')
      await before.release()
      const readers = await Promise.all([1, 2, 3].map(() => context.client().acquire('a', { mode: 'shared' })))
      expect(new Set(readers.map((reader) => reader.token)).size).toBe(1)
      expect(readers[0]?.token).toBeGreaterThan(before.token)
      expect(new Set(readers.map((reader) => reader.id)).size).toBe(3)
      const writer = locks.acquire('a')
      await until(async () => (await pendingOf(locks, 'a')) === 1, 'the writer waits')
      for (const reader of readers) await reader.release()
      expect((await writer).token).toBeGreaterThan(readers[0]?.token as bigint)
    })

    it('goes to readers that wait behind a writer only after the writer, all together', async () => {
      const locks = context.client()
      const reader = await locks.acquire('a', { mode: 'shared' })
      const writing = locks.acquire('a')
      await until(async () => (await pendingOf(locks, 'a')) === 1, 'the writer waits')
      const late = [1, 2].map(() => context.client().acquire('a', { mode: 'shared' }))
      await until(async () => (await pendingOf(locks, 'a')) === 3, 'the readers wait')
      expect(await locks.tryAcquire('a', { mode: 'shared' })).toBeNull()
      await reader.release()
      const writer = await writing
      await writer.release()
      const readers = await Promise.all(late)
      expect(readers[0]?.token).toBe(readers[1]?.token)
      expect(readers[0]?.token).toBeGreaterThan(writer.token)
    })
  })

  describe.runIf(able('permits'))('a semaphore', () => {
    it('has as many holders as permits, each with a slot and a token of its own', async () => {
      const locks = context.client()
      const holds = await Promise.all([0, 1, 2].map(() => context.client().acquire('gpu', { permits: 3 })))
      expect(holds.map((hold) => hold.slot).sort()).toEqual([0, 1, 2])
      expect(new Set(holds.map((hold) => hold.token)).size).toBe(3)
      expect(await locks.tryAcquire('gpu', { permits: 3 })).toBeNull()
      const waiting = locks.acquire('gpu', { permits: 3 })
      await until(async () => (await pendingOf(locks, 'gpu')) === 1, 'the fourth waits')
      await holds[1]?.release()
      const next = await waiting
      expect(next.slot).toBe(holds[1]?.slot)
      for (const hold of holds) expect(next.token).toBeGreaterThan(hold.token)
    })

    it('has one size, and is no exclusive lock at the same time', async () => {
      const locks = context.client()
      await locks.acquire('gpu', { permits: 3 })
      await expect(locks.acquire('gpu', { permits: 4 })).rejects.toMatchObject({ code: 'mismatch' })
      await expect(locks.acquire('gpu')).rejects.toBeInstanceOf(InvalidError)
    })
  })

  describe.runIf(capabilities.severalLocks)('several locks', () => {
    it('are taken together or not at all, without a deadlock', async () => {
      const locks = context.client()
      const b = await locks.acquire('b')
      const both = locks.acquire(['a', 'b'])
      await until(async () => (await pendingOf(locks, 'a')) === 1, 'it waits for both')
      await b.release()
      const hold = await both
      expect(hold.names).toEqual(['a', 'b'])
      expect(await locks.tryAcquire('a')).toBeNull()
      expect(await locks.tryAcquire('b')).toBeNull()
      await hold.release()
      const crossed = await Promise.all(
        Array.from({ length: 12 }, async (_, i) => {
          await context.client().request(i % 2 === 0 ? ['a', 'b'] : ['b', 'a'], () => {})
          return true
        }),
      )
      expect(crossed).toHaveLength(12)
    })

    it.runIf(able('shared'))('may have modes of their own', async () => {
      const locks = context.client()
      const hold = await locks.acquire(['a', { name: 'b', mode: 'shared' }])
      expect(await locks.tryAcquire('a', { mode: 'shared' })).toBeNull()
      const reader = await locks.acquire('b', { mode: 'shared', wait: 0 })
      expect(reader.token).toBe(hold.tokenOf('b'))
      expect(hold.token).toBe(hold.tokenOf('a'))
    })
  })

  it('refuses what makes no sense', async () => {
    const locks = context.client()
    await expect(locks.acquire('')).rejects.toBeInstanceOf(InvalidError)
    await expect(locks.acquire('a\u0000b')).rejects.toBeInstanceOf(InvalidError)
    await expect(locks.acquire(['a', 'a'])).rejects.toBeInstanceOf(InvalidError)
    await expect(locks.acquire('a', { ttl: 30 })).rejects.toBeInstanceOf(InvalidError)
    await expect(locks.acquire('a', { data: new Uint8Array(5_000) })).rejects.toMatchObject({ code: 'invalid' })
    await expect(locks.adopt('leasehold-hold-1.portable.12.00')).rejects.toBeInstanceOf(InvalidError)
  })
}
