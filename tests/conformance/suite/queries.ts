import { type Locks, VersionConflictError, type WatchEvent } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { type Context, pendingOf, until } from './context.js'

/** What others see: queries, watches, elections; and registers. */
export function views(context: Context): void {
  const { capabilities } = context.fixture

  describe('a query', () => {
    it('shows who holds and who waits', async () => {
      const one = context.client({ clientName: 'worker-7' })
      const hold = await one.acquire('a/x', { data: 'hello' })
      const waiting = context.client({ clientName: 'worker-8' }).acquire('a/x')
      await until(async () => (await pendingOf(one, 'a/x')) === 1, 'it waits')
      const view = await one.query({ prefix: 'a' })
      expect(view.held).toHaveLength(1)
      expect(view.held[0]).toMatchObject({ id: hold.id, client: 'worker-7', persistent: false })
      expect(view.held[0]?.locks).toEqual([{ name: 'a/x', mode: 'exclusive', token: hold.token }])
      expect(new TextDecoder().decode(view.held[0]?.data)).toBe('hello')
      expect(view.pending[0]).toMatchObject({ client: 'worker-8', locks: [{ name: 'a/x', mode: 'exclusive' }] })
      expect((await one.query({ prefix: 'a/x' })).held).toHaveLength(1)
      await one.acquire('ab')
      expect((await one.query({ prefix: 'a' })).held).toHaveLength(1)
      await hold.release()
      await waiting
    })

    it('comes in pages that show everything once', async () => {
      const locks = context.client()
      const names = Array.from({ length: 7 }, (_, i) => `page/${i}`)
      await Promise.all(names.map((name) => locks.acquire(name)))
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await locks.query({ prefix: 'page', limit: 3, ...(cursor === undefined ? {} : { cursor }) })
        expect(page.held.length).toBeLessThanOrEqual(3)
        seen.push(...page.held.map((row) => row.locks[0]?.name ?? ''))
        cursor = page.next
      } while (cursor !== undefined)
      expect(seen.sort()).toEqual(names)
    })
  })

  describe.runIf(capabilities.watch)('a watch', () => {
    const collect = async (
      locks: Locks,
      options: { from: string; prefix?: string },
      enough: (e: WatchEvent) => boolean,
    ) => {
      const events: WatchEvent[] = []
      for await (const event of locks.watch(options)) {
        events.push(event)
        if (enough(event)) break
      }
      return events
    }

    it('shows the life of a lock in order, and continues from any cursor', async () => {
      const [one, two] = [context.client(), context.client()]
      const from = (await one.query({ name: 'a' })).at
      const hold = await one.acquire('a')
      const waiting = two.acquire('a')
      await until(async () => (await pendingOf(one, 'a')) === 1, 'it waits')
      await hold.release()
      const next = await waiting
      await two.steal('a', { reason: 'test' })
      const ended = (event: WatchEvent) => event.kind === 'freed' && event.id === next.id
      const events = (await collect(one, { from, prefix: 'a' }, ended)).filter(
        ({ kind }) => kind !== 'sessionOpened' && kind !== 'sessionEnded',
      )
      expect(events.map(({ kind }) => kind)).toEqual(['held', 'queued', 'freed', 'held', 'freed'])
      expect(events[0]).toMatchObject({ id: hold.id, locks: [{ name: 'a', token: hold.token }] })
      expect(events[2]).toMatchObject({ id: hold.id, reason: 'released' })
      expect(events[4]).toMatchObject({ reason: 'stolen', text: 'test' })
      const rest = await collect(one, { from: (events[1] as WatchEvent).cursor, prefix: 'a' }, ended)
      const own = rest.filter(({ kind }) => kind !== 'sessionOpened' && kind !== 'sessionEnded')
      expect(own.map(({ cursor }) => cursor)).toEqual(events.slice(2).map(({ cursor }) => cursor))
    })

    it('shows a wait that was given up, and registers', async () => {
      const locks = context.client()
      const from = (await locks.query({ name: 'a' })).at
      await locks.acquire('a')
      await locks.acquire('a', { wait: '200ms' }).catch(() => {})
      const { version } = await locks.register('a').put({ x: 1 })
      await locks.register('a').delete()
      const events = await collect(locks, { from, prefix: 'a' }, ({ kind }) => kind === 'deleted')
      // The client ends the wait of an engine that is held up.
      const reason = expect.stringMatching(/^(timeout|cancelled)$/) as string
      expect(events.find(({ kind }) => kind === 'unqueued')).toMatchObject({ names: ['a'], reason })
      expect(events.find(({ kind }) => kind === 'put')).toMatchObject({ key: 'a', version })
    })

    it('ends by its signal', async () => {
      const locks = context.client()
      const controller = new AbortController()
      setTimeout(() => controller.abort(), 200)
      for await (const event of locks.watch({ prefix: 'none', signal: controller.signal }))
        expect(event).toBeUndefined()
    })
  })

  it.runIf(capabilities.watch)('an election has one leader at a time, and every observer sees it', async () => {
    const [one, two] = [context.client(), context.client()]
    const first = await one.election('boss').campaign({ value: 'host-1' })
    const seen: (string | null)[] = []
    const controller = new AbortController()
    const observing = (async () => {
      for await (const leader of two.election('boss').observe({ signal: controller.signal })) {
        seen.push(leader?.value ?? null)
        if (seen.at(-1) === 'host-2') controller.abort()
      }
    })()
    const second = two.election('boss').campaign({ value: 'host-2' })
    await until(async () => (await pendingOf(one, 'boss')) === 1, 'the second waits')
    await until(() => seen.includes('host-1'), 'the first is seen')
    await first.release()
    expect((await second).token).toBeGreaterThan(first.token)
    await observing
    expect(seen[0]).toBe('host-1')
    expect(seen.at(-1)).toBe('host-2')
  })

  describe.runIf(capabilities.registers)('a register', () => {
    it('is written by version', async () => {
      const register = context.client().register('flags')
      expect(await register.get()).toBeNull()
      await expect(register.put(1, { ifVersion: 5n })).rejects.toBeInstanceOf(VersionConflictError)
      const { version } = await register.put({ dark: true }, { ifVersion: 0n })
      expect(await register.get()).toMatchObject({ version, value: { dark: true } })
      await expect(register.put(2, { ifVersion: 0n })).rejects.toMatchObject({ code: 'version-conflict', version })
      const next = await register.put(new Uint8Array([0, 255]), { ifVersion: version })
      expect(next.version).toBeGreaterThan(version)
      expect((await register.get())?.bytes).toEqual(new Uint8Array([0, 255]))
      await expect(register.delete({ ifVersion: version })).rejects.toBeInstanceOf(VersionConflictError)
      await register.delete({ ifVersion: next.version })
      expect(await register.get()).toBeNull()
      const again = await register.put(3, { ifVersion: 0n })
      expect(again.version).toBeGreaterThan(next.version)
    })

    it('takes one of many writers of one version', async () => {
      const results = await Promise.allSettled(
        Array.from({ length: 8 }, (_, i) => context.client().register('r').put(i, { ifVersion: 0n })),
      )
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    })

    it.runIf(capabilities.fencedRegisters)('may be fenced by a lock', async () => {
      const [one, two] = [context.client(), context.client()]
      const hold = await one.acquire('a')
      const register = one.register('r')
      await expect(register.put(1, { fence: hold })).rejects.toMatchObject({ code: 'invalid' })
      await register.put(1, { fence: hold, ifVersion: 0n })
      await register.put(2, { fence: hold })
      expect((await register.get())?.lock).toBe('a')
      await expect(two.register('r').put(3)).rejects.toMatchObject({ code: 'mismatch' })
      await two.steal('a', { reason: 'test' })
      const next = await two.acquire('a')
      await expect(register.put(4, { fence: hold })).rejects.toMatchObject({ code: /lost|not-holder/ })
      await two.register('r').put(5, { fence: next })
      expect((await register.get())?.value).toBe(5)
      await two.register('r').delete({ fence: next })
      await two.register('r').put(6)
    })
  })
}
