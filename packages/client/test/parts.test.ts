import {
  AbortedError,
  AcquireTimeoutError,
  EpochChangedError,
  InvalidError,
  VersionConflictError,
} from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Leader, WatchEvent } from '../src/index.js'
import type { TestService } from './support/service.js'
import { suite } from './support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

describe('query', () => {
  it('shows who holds and who waits, with full ids and owner data', async () => {
    const locks = service.client({ clientName: 'me' })
    const hold = await service.during(locks.acquire('a/b', { data: 'hello' }))
    const waiting = locks.acquire('a/b').catch(() => {})
    await service.platform.advance(10)
    const view = await service.during(locks.query({ prefix: 'a' }))
    expect(view.held[0]).toMatchObject({ id: hold.id, client: 'me', locks: [{ name: 'a/b', token: hold.token }] })
    expect(new TextDecoder().decode(view.held[0]?.data)).toBe('hello')
    expect(view.pending).toHaveLength(1)
    expect((await service.during(locks.query({ prefix: 'a/' }))).held).toHaveLength(1)
    expect((await service.during(locks.query({ prefix: 'a/bb' }))).held).toHaveLength(0)
    await service.during(locks.close())
    await waiting
  })

  it('hides the namespace', async () => {
    const mine = service.client({ namespace: 'team-a' })
    const all = service.client()
    const hold = await service.during(mine.acquire('x'))
    expect(hold.name).toBe('x')
    expect(hold.tokenOf('x')).toBe(hold.token)
    expect((await service.during(mine.query())).held[0]?.locks[0]?.name).toBe('x')
    expect((await service.during(all.query())).held[0]?.locks[0]?.name).toBe('team-a/x')
    await service.during(all.acquire('x'))
    expect((await service.during(mine.query({ name: 'x' }))).held).toHaveLength(1)
  })

  it('refuses what makes no sense, and the connection goes on', async () => {
    const locks = service.client()
    await expect(service.during(locks.query({ limit: 5_000 }))).rejects.toBeInstanceOf(InvalidError)
    await expect(service.during(locks.query({ cursor: 'x' }))).rejects.toBeInstanceOf(InvalidError)
    expect((await service.during(locks.query())).held).toEqual([])
    expect(service.network.connects).toHaveLength(1)
  })
})

describe('register', () => {
  it('keeps JSON and bytes under versions that grow', async () => {
    const register = service.client().register('config/flags')
    expect(await service.during(register.get())).toBeNull()
    const first = await service.during(register.put({ dark: true }, { ifVersion: 0n }))
    expect((await service.during(register.get()))?.value).toEqual({ dark: true })
    const second = await service.during(register.put(new Uint8Array([1, 2]), { ifVersion: first.version }))
    expect(second.version).toBeGreaterThan(first.version)
    const entry = await service.during(register.get())
    expect(entry?.bytes).toEqual(new Uint8Array([1, 2]))
    expect(() => entry?.value).toThrow(InvalidError)
    await service.during(register.delete({ ifVersion: second.version }))
    expect(await service.during(register.get())).toBeNull()
  })

  it('a wrong version is VersionConflictError with the right one', async () => {
    const register = service.client().register('r')
    const { version } = await service.during(register.put(1))
    await expect(service.during(register.put(2, { ifVersion: 0n }))).rejects.toMatchObject({ version })
    await expect(service.during(register.put(2, { ifVersion: 99n }))).rejects.toBeInstanceOf(VersionConflictError)
  })

  it('a fenced put needs the hold', async () => {
    const locks = service.client()
    const register = locks.register('r')
    const hold = await service.during(locks.acquire('a'))
    await service.during(register.put(1, { fence: hold, ifVersion: 0n }))
    expect((await service.during(register.get()))?.lock).toBe('a')
    await expect(service.during(register.put(2))).rejects.toMatchObject({ code: 'mismatch' })
    await service.during(hold.release())
    await expect(service.during(register.put(2, { fence: hold }))).rejects.toMatchObject({ code: 'not-holder' })
    const other = await service.during(locks.acquire('a'))
    await service.during(register.put(3, { fence: other }))
  })

  it('refuses wrong arguments', async () => {
    const register = service.client().register('r')
    await expect(register.put(undefined)).rejects.toBeInstanceOf(InvalidError)
    await expect(register.put(1n)).rejects.toBeInstanceOf(InvalidError)
    await expect(register.put(1, { ifVersion: 1 as never })).rejects.toBeInstanceOf(InvalidError)
    await expect(register.put(1, { fence: {} as never })).rejects.toBeInstanceOf(InvalidError)
    await expect(register.put(1, { version: 1n } as never)).rejects.toBeInstanceOf(InvalidError)
    expect(() => service.client().register('')).toThrow(InvalidError)
  })

  it('a put that cannot be sent is unreachable, and never takes effect later', async () => {
    const locks = service.client({ connectTimeout: '2s' })
    const register = locks.register('r')
    await service.during(register.put(1))
    service.network.down.add(service.url)
    service.network.cutAll()
    await service.platform.advance(10)
    await expect(service.during(register.put(2))).rejects.toMatchObject({ code: 'unreachable' })
    service.network.down.clear()
    await service.platform.advance(3_000)
    expect((await service.during(register.get()))?.value).toBe(1)
  })

  it('a put whose answer is lost is unknown-outcome', async () => {
    const locks = service.client({ connectTimeout: '2s' })
    const register = locks.register('r')
    await service.during(register.put(1))
    service.network.holdBack = true
    const put = service.during(register.put(2))
    await expect(put).rejects.toMatchObject({ code: 'unknown-outcome' })
    service.network.flush()
  })

  it('watch shows the value now and after every change', async () => {
    const locks = service.client()
    const register = locks.register('r')
    const seen: unknown[] = []
    const controller = new AbortController()
    const watching = (async () => {
      for await (const entry of register.watch({ signal: controller.signal })) seen.push(entry?.value ?? null)
    })()
    await service.platform.advance(50)
    await service.during(register.put(1))
    await service.platform.advance(50)
    await service.during(register.put(2))
    await service.platform.advance(50)
    await service.during(register.delete())
    await service.platform.advance(50)
    controller.abort()
    await service.during(watching)
    expect(seen).toEqual([null, 1, 2, null])
  })
})

describe('watch', () => {
  async function collect(
    work: () => Promise<void>,
    options: { prefix?: string; from?: string } = {},
  ): Promise<WatchEvent[]> {
    const locks = service.client()
    const controller = new AbortController()
    const events: WatchEvent[] = []
    const watching = (async () => {
      for await (const event of locks.watch({ ...options, signal: controller.signal })) events.push(event)
    })()
    await service.platform.advance(50)
    await work()
    await service.platform.advance(5_000)
    controller.abort()
    await service.during(watching)
    return events
  }

  it('shows holds as they come and go', async () => {
    const locks = service.client()
    const events = await collect(
      async () => {
        await service.during(locks.request('a/b', () => {}))
        await service.during(locks.request('c', () => {}))
      },
      { prefix: 'a' },
    )
    expect(events.map((event) => event.kind)).toEqual(['held', 'freed'])
  })

  it('has no gap and no repeat over reconnects, wherever the connection breaks', async () => {
    const locks = service.client({}, { network: service.line() })
    const events = await collect(
      async () => {
        for (let i = 0; i < 20; i++) {
          await service.during(locks.register('r').put(i))
          service.network.cutAfter = service.network.toServer + service.network.toClient + (i % 7)
          await service.platform.advance(20)
        }
      },
      { prefix: 'r' },
    )
    expect(events).toHaveLength(20)
    const versions = events.map((event) => (event.kind === 'put' ? event.version : -1n))
    expect([...versions].sort((a, b) => Number(a - b))).toEqual(versions)
  })

  it('goes on from a cursor', async () => {
    const locks = service.client()
    const { at } = await service.during(locks.query())
    await service.during(locks.request('a', () => {}))
    const events = await collect(async () => {}, { from: at, prefix: 'a' })
    expect(events.map((event) => event.kind)).toEqual(['held', 'freed'])
    const rest = await collect(async () => {}, { from: events[0]?.cursor ?? '', prefix: 'a' })
    expect(rest.map((event) => event.kind)).toEqual(['freed'])
  })

  it('refuses a cursor that is none', async () => {
    const locks = service.client()
    await expect(locks.watch({ from: 'yesterday' }).next()).rejects.toBeInstanceOf(InvalidError)
  })

  it('ends with epoch-changed after a restore', async () => {
    const locks = service.client()
    const controller = new AbortController()
    const watching = (async () => {
      for await (const _ of locks.watch({ signal: controller.signal })) continue
    })().catch((error: unknown) => error)
    await service.platform.advance(50)
    service.member.restore(2)
    service.network.cutAll()
    expect(await service.during(watching)).toBeInstanceOf(EpochChangedError)
  })
})

describe('election', () => {
  it('has one leader at a time, and observers see who and when none', async () => {
    const [one, two, watcher] = [service.client(), service.client(), service.client()]
    const controller = new AbortController()
    const seen: (Leader | null)[] = []
    const observing = (async () => {
      for await (const leader of watcher.election('boss').observe({ signal: controller.signal })) seen.push(leader)
    })()
    await service.platform.advance(50)
    let finish: () => void = () => {}
    const first = one
      .election('boss')
      .campaign({ value: 'one' }, () => new Promise<void>((resolve) => (finish = resolve)))
    await service.platform.advance(50)
    const electionTwo = two.election('boss')
    const second = electionTwo.campaign({ value: 'two' })
    await service.platform.advance(50)
    finish()
    await service.during(first)
    const leadership = await service.during(second)
    await service.platform.advance(50)
    expect(await service.during(watcher.election('boss').leader())).toMatchObject({
      value: 'two',
      token: leadership.token,
    })
    await service.during(electionTwo.resign())
    expect(leadership.state).toBe('released')
    await service.platform.advance(50)
    controller.abort()
    await service.during(observing)
    expect(seen.map((leader) => leader?.value ?? null)).toEqual([null, 'one', null, 'two', null])
  })

  it('a dead leader is followed by the next one', async () => {
    const [one, two] = [service.client({ ttl: '2s' }), service.client({}, { network: service.line() })]
    const leadership = await service.during(one.election('boss').campaign({ value: 'one' }))
    service.network.blackHole = true
    const next = await service.during(two.election('boss').campaign({ value: 'two' }))
    expect(leadership.state).toBe('lost')
    expect(next.token).toBeGreaterThan(leadership.token)
  })
})

describe('once', () => {
  it('runs once per slot over all instances', async () => {
    const first = service.client()
    const instances = [first, service.client(), service.client()]
    const ran: string[] = []
    for (const slot of ['2026-11-29T03:00Z', '2026-11-29T04:00Z']) {
      const outcomes = await service.during(
        Promise.all(instances.map((locks) => locks.once('report', { slot }, () => void ran.push(slot)))),
      )
      expect(outcomes.filter((outcome) => outcome.ran)).toHaveLength(1)
    }
    expect(ran).toEqual(['2026-11-29T03:00Z', '2026-11-29T04:00Z'])
    const late = await service.during(first.once('report', { slot: '2026-11-29T03:00Z' }, () => {}))
    expect(late).toEqual({ ran: false })
  })

  it('a throw keeps the slot, or frees it if asked', async () => {
    const locks = service.client()
    const fail = () => Promise.reject(new Error('mine'))
    await expect(service.during(locks.once('a', { slot: '1' }, fail))).rejects.toThrow('mine')
    expect(await service.during(locks.once('a', { slot: '1' }, () => 1))).toEqual({ ran: false })
    await expect(service.during(locks.once('b', { slot: '1', onError: 'free' }, fail))).rejects.toThrow('mine')
    expect(await service.during(locks.once('b', { slot: '1' }, () => 1))).toEqual({ ran: true, value: 1 })
    await expect(service.during(locks.once('b', { slot: '' }, () => 1))).rejects.toBeInstanceOf(InvalidError)
  })
})

describe('what goes on for ever', () => {
  it('an observer and a register watch outlive outages and restores, and show what they have missed', async () => {
    const line = service.line()
    const [boss, watcher] = [service.client(), service.client({ connectTimeout: '1s' }, { network: line })]
    const first = await service.during(boss.election('boss').campaign({ value: 'one' }))
    const controller = new AbortController()
    const { signal } = controller
    const leaders: (string | undefined)[] = []
    const values: unknown[] = []
    const observing = (async () => {
      for await (const leader of watcher.election('boss').observe({ signal })) leaders.push(leader?.value)
    })()
    const watching = (async () => {
      for await (const entry of watcher.register('flag').watch({ signal })) values.push(entry?.value)
    })()
    await service.platform.advance(50)
    expect([leaders, values]).toEqual([['one'], [undefined]])
    service.member.restore(2)
    service.member.refuse = 'no-quorum'
    service.network.cutAll()
    line.cutAll()
    await service.platform.advance(10_000)
    service.member.refuse = undefined
    await service.platform.advance(5_000)
    expect(first.state).toBe('lost')
    await service.during(boss.register('flag').put(1))
    await service.during(boss.election('boss').campaign({ value: 'two' }))
    await service.platform.advance(1_000)
    expect(leaders[0]).toBe('one')
    expect(leaders.slice(-1)).toEqual(['two'])
    expect(values).toEqual([undefined, 1])
    controller.abort()
    await service.during(Promise.all([observing, watching]))
  })
})

describe('the slots of once', () => {
  it('whoever comes while the slot runs is told so at once, however long it takes', async () => {
    const one = service.client()
    const two = service.client()
    let end = () => {}
    const running = one.once('long', { slot: 'a' }, () => new Promise<void>((done) => void (end = done)))
    await service.platform.advance(100)
    expect(await service.during(two.once('long', { slot: 'a', wait: '1s' }, () => {}))).toEqual({ ran: false })
    // With 'free' it must wait: a throw would leave the slot to it.
    const free = two.once('long', { slot: 'a', wait: '1s', onError: 'free' }, () => {})
    await expect(service.during(free)).rejects.toBeInstanceOf(AcquireTimeoutError)
    end()
    expect(await service.during(running)).toEqual({ ran: true, value: undefined })
  })

  it('a late replica runs a slot that nobody has run, although a later one has', async () => {
    const locks = service.client()
    const run = (slot: string | Date) => service.during(locks.once('late', { slot }, () => slot))
    expect(await run('2026-11-29T03:05Z')).toMatchObject({ ran: true })
    expect(await run('2026-11-29T03:00Z')).toMatchObject({ ran: true })
    expect(await run('2026-11-29T03:00Z')).toEqual({ ran: false })
    expect(await run(new Date(0))).toMatchObject({ ran: true })
    expect(await run('1970-01-01T00:00:00.000Z')).toEqual({ ran: false })
  })

  it('old ones are forgotten, and count as run; the register does not grow', async () => {
    const locks = service.client()
    const run = (slot: string) => service.during(locks.once('many', { slot }, () => slot))
    for (let n = 1; n <= 130; n++) expect(await run(`tick-${n}`)).toMatchObject({ ran: true })
    expect(await run('tick-9')).toEqual({ ran: false })
    expect(await run('tick-0')).toEqual({ ran: false })
    expect(await run('tick-131')).toMatchObject({ ran: true })
    const kept = (await service.during(locks.register('once/many').get()))?.value as { ran: string[] }
    expect(kept.ran).toHaveLength(100)
  })
})

describe('steal', () => {
  it('needs a name: without one it would be every hold of the client', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    await expect(locks.steal(undefined as never, { reason: 'typo' })).rejects.toBeInstanceOf(InvalidError)
    expect(hold.state).toBe('held')
  })

  it('needs a reason', async () => {
    const locks = service.client()
    await expect(locks.steal('a', { reason: '' })).rejects.toBeInstanceOf(InvalidError)
    // @ts-expect-error: no reason
    await expect(locks.steal('a')).rejects.toBeInstanceOf(InvalidError)
    expect(await service.during(locks.steal('a', { reason: 'x' }))).toEqual({ stolen: 0 })
  })
})

describe('close', () => {
  it('ends waiting, holds and sessions at once, and then everything is refused', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    const waiting = locks.acquire('a').catch((error: unknown) => error)
    await service.platform.advance(10)
    await service.during(locks.close())
    expect(await waiting).toBeInstanceOf(AbortedError)
    expect(await hold.lost).toMatchObject({ reason: 'closed' })
    expect(locks.status).toEqual({ state: 'closed' })
    expect(service.member.state.machine.sessions.size).toBe(0)
    for (const call of [
      () => locks.acquire('b'),
      () => locks.query(),
      () => locks.connect(),
      () => locks.register('r').put(1),
    ]) {
      await expect(call()).rejects.toBeInstanceOf(AbortedError)
    }
    await locks.close()
  })

  it('a hold stops being held before its close is sent', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    const sent = service.network.toServer
    const closing = locks.close()
    await Promise.resolve()
    await Promise.resolve()
    await Promise.resolve()
    if (service.network.toServer > sent) expect(hold.state).toBe('lost')
    await service.during(closing)
    expect(hold.state).toBe('lost')
  })

  it('drain waits for the holds, and lets nobody new in', async () => {
    const locks = service.client()
    let finish: () => void = () => {}
    const work = locks.request('a', () => new Promise<number>((resolve) => (finish = () => resolve(7))))
    await service.platform.advance(10)
    const waiting = locks.acquire('a').catch((error: unknown) => error)
    await service.platform.advance(10)
    const closing = locks.close({ drain: '10s' })
    await service.platform.advance(3_000)
    expect(await waiting).toBeInstanceOf(AbortedError)
    await expect(locks.acquire('b')).rejects.toBeInstanceOf(AbortedError)
    expect(service.member.state.machine.holds.size).toBe(1)
    finish()
    expect(await service.during(work)).toBe(7)
    await service.during(closing)
  })

  it('drain has an end', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    const start = service.platform.mono
    await service.during(locks.close({ drain: '5s' }))
    expect(service.platform.mono - start).toBeLessThan(5_100)
    expect(await hold.lost).toMatchObject({ reason: 'closed' })
  })

  it('of a client that was never used connects to nothing', async () => {
    const locks = service.client()
    await locks.close()
    expect(service.network.connects).toEqual([])
  })

  it('while the service is away does not hang', async () => {
    const locks = service.client({ connectTimeout: '2s' })
    await service.during(locks.acquire('a'))
    service.network.down.add(service.url)
    service.network.cutAll()
    const start = service.platform.mono
    await service.during(locks.close())
    expect(service.platform.mono - start).toBeLessThan(2_500)
  })

  it('while a session is being opened leaves none behind', async () => {
    const locks = service.client()
    const waiting = locks.acquire('a').catch((error: unknown) => error)
    await service.during(locks.close())
    expect(await waiting).toBeInstanceOf(AbortedError)
    await service.platform.advance(20_000)
    expect(service.member.state.machine.sessions.size).toBe(0)
  })
})

describe('status', () => {
  it('is told as it changes', async () => {
    const locks = service.client()
    const seen: string[] = []
    const off = locks.on('status', (status) => seen.push(status.state))
    expect(locks.status).toEqual({ state: 'idle' })
    await service.during(locks.connect())
    expect(locks.status).toMatchObject({ state: 'connected', url: service.url, epoch: 1 })
    service.network.cutAll()
    await service.platform.advance(100)
    await service.during(locks.close())
    off()
    expect(seen).toEqual(['connecting', 'connected', 'connecting', 'connected', 'closed'])
    // @ts-expect-error: no such event
    expect(() => locks.on('error', () => {})).toThrow(InvalidError)
  })
})
