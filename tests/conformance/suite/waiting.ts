import { setTimeout as sleep } from 'node:timers/promises'
import { AbortedError, AcquireTimeoutError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { type Context, pendingOf, rejection, until } from './context.js'

/** The ends of a wait: the grant, the wait itself, an abort, the end of the client; and races between them. */
export function waiting(context: Context): void {
  describe('a wait', () => {
    it('ends with AcquireTimeoutError, and leaves the queue', async () => {
      const locks = context.client()
      const hold = await locks.acquire('a')
      const start = performance.now()
      await expect(locks.acquire('a', { wait: '1s' })).rejects.toBeInstanceOf(AcquireTimeoutError)
      expect(performance.now() - start).toBeGreaterThan(950)
      await until(async () => (await pendingOf(locks, 'a')) === 0, 'it has left the queue')
      await hold.release()
      expect((await locks.acquire('a', { wait: 0 })).state).toBe('held')
    })

    it('ends by its signal, with the reason as cause', async () => {
      const locks = context.client()
      await locks.acquire('a')
      const controller = new AbortController()
      const waits = rejection(locks.acquire('a', { signal: controller.signal }))
      await until(async () => (await pendingOf(locks, 'a')) === 1, 'it waits')
      controller.abort(new Error('enough'))
      const error = await waits
      expect(error).toBeInstanceOf(AbortedError)
      expect(error).toMatchObject({ cause: { message: 'enough' } })
      await until(async () => (await pendingOf(locks, 'a')) === 0, 'it has left the queue')
    })

    it('that ends in the middle of the queue does not stop those behind it', async () => {
      const locks = context.client()
      const hold = await locks.acquire('a')
      const controller = new AbortController()
      const front = rejection(locks.acquire('a', { signal: controller.signal }))
      await until(async () => (await pendingOf(locks, 'a')) === 1, 'the first waits')
      const behind = context.client().acquire('a')
      await until(async () => (await pendingOf(locks, 'a')) === 2, 'the second waits')
      controller.abort()
      await front
      await hold.release()
      expect((await behind).state).toBe('held')
    })

    it.runIf(context.fixture.capabilities.modes.includes('shared'))(
      'of a writer that ends lets the readers behind it in',
      async () => {
        const locks = context.client()
        const first = await locks.acquire('a', { mode: 'shared' })
        const controller = new AbortController()
        const writer = rejection(locks.acquire('a', { signal: controller.signal }))
        await until(async () => (await pendingOf(locks, 'a')) === 1, 'the writer waits')
        const reader = context.client().acquire('a', { mode: 'shared' })
        await until(async () => (await pendingOf(locks, 'a')) === 2, 'the reader waits')
        controller.abort()
        await writer
        expect((await reader).token).toBe(first.token)
      },
    )

    it('without an end ends with its client', async () => {
      const [one, two] = [context.client(), context.client()]
      await one.acquire('a')
      const waits = rejection(two.acquire('a', { wait: Number.POSITIVE_INFINITY }))
      await until(async () => (await pendingOf(one, 'a')) === 1, 'it waits')
      await two.close()
      expect(await waits).toBeInstanceOf(AbortedError)
      await until(async () => (await pendingOf(one, 'a')) === 0, 'it has left the queue')
    })
  })

  it('an abort that races the grant leaves nothing behind', async () => {
    const [one, two] = [context.client(), context.client()]
    for (let round = 0; round < 12; round++) {
      const holder = await one.acquire('a')
      const controller = new AbortController()
      const waits = two.acquire('a', { signal: controller.signal }).then(
        (hold) => hold,
        (error: unknown) => error,
      )
      await until(async () => (await pendingOf(one, 'a')) === 1, 'it waits')
      const released = holder.release()
      await sleep(round / 4)
      controller.abort()
      await released
      const outcome = await waits
      if (outcome instanceof AbortedError) continue
      await (outcome as { release(): Promise<unknown> }).release()
    }
    expect((await one.acquire('a', { wait: '30s' })).state).toBe('held')
    await until(async () => (await one.query({ name: 'a' })).held.length === 1, 'one hold is left')
  })

  it('64 that want one lock all get it', async () => {
    const clients = [context.client(), context.client()]
    let done = 0
    await Promise.all(
      Array.from({ length: 64 }, (_, i) =>
        clients[i % 2]?.request('a', { wait: '60s' }, () => {
          done++
        }),
      ),
    )
    expect(done).toBe(64)
  })
}
