import { AbortedError, AcquireTimeoutError, BusyError, InvalidError, UnavailableError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import { settle } from '../support/platform.js'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

/** What holds and waits at the service, now. */
function state() {
  const { holds, waiters } = service.member.state.machine
  return { holds: holds.size, waiters: waiters.size }
}

describe('waiting', () => {
  it('is first come, first served, by pushed grants and not by polling', async () => {
    const [one, two, three] = [service.client(), service.client(), service.client()]
    const first = await service.during(one.acquire('a'))
    const order: number[] = []
    const second = two.acquire('a').then((hold) => (order.push(2), hold))
    await service.platform.advance(50)
    const third = three.acquire('a').then((hold) => (order.push(3), hold))
    await service.platform.advance(1_000)
    const before = service.member.log.filter((command) => command.kind === 'acquire').length
    await service.platform.advance(2_000)
    expect(service.member.log.filter((command) => command.kind === 'acquire').length).toBe(before)
    await service.during(first.release())
    await service.during((await service.during(second)).release())
    await service.during((await service.during(third)).release())
    expect(order).toEqual([2, 3])
  })

  it('ends after `wait` with AcquireTimeoutError, and leaves the queue', async () => {
    const locks = service.client()
    await service.during(locks.acquire('a'))
    const start = service.platform.mono
    await expect(service.during(locks.acquire('a', { wait: '5s' }))).rejects.toBeInstanceOf(AcquireTimeoutError)
    expect(service.platform.mono - start).toBeGreaterThanOrEqual(4_900)
    expect(service.platform.mono - start).toBeLessThan(5_600)
    expect(state()).toEqual({ holds: 1, waiters: 0 })
  })

  it('of 0 is BusyError, of tryAcquire null, and names the holder', async () => {
    const locks = service.client({ clientName: 'worker-7' })
    await service.during(locks.acquire('a'))
    await expect(service.during(locks.acquire('a', { wait: 0 }))).rejects.toBeInstanceOf(BusyError)
    expect(await service.during(locks.tryAcquire('a'))).toBeNull()
    expect((await service.during(locks.tryAcquire('b')))?.state).toBe('held')
  })

  it('unlimited waits beyond what one timer can', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    const waiting = locks.acquire('a', { wait: Number.POSITIVE_INFINITY })
    await service.platform.advance(120_000)
    await service.during(hold.release())
    expect((await service.during(waiting)).state).toBe('held')
  })

  it('takes a signal: AbortedError with its reason as cause', async () => {
    const locks = service.client()
    await service.during(locks.acquire('a'))
    const controller = new AbortController()
    const waiting = locks.acquire('a', { signal: controller.signal })
    await service.platform.advance(100)
    expect(state()).toEqual({ holds: 1, waiters: 1 })
    controller.abort(new Error('enough'))
    const error = await service.during(waiting.catch((e: unknown) => e))
    expect(error).toBeInstanceOf(AbortedError)
    expect(error).toMatchObject({ name: 'AbortError', cause: { message: 'enough' } })
    await service.platform.advance(10)
    expect(state()).toEqual({ holds: 1, waiters: 0 })
  })

  it('an aborted signal sends nothing', async () => {
    const locks = service.client()
    await expect(service.during(locks.acquire('a', { signal: AbortSignal.abort() }))).rejects.toBeInstanceOf(
      AbortedError,
    )
    expect(service.network.connects).toEqual([])
  })

  it('a signal has no effect once the lock is held', async () => {
    const controller = new AbortController()
    const hold = await service.during(service.client().acquire('a', { signal: controller.signal }))
    controller.abort()
    await service.platform.advance(100)
    expect(hold.state).toBe('held')
  })

  it('leaves no listener on the signal, however it ends', async () => {
    const locks = service.client()
    const controller = new AbortController()
    const { signal } = controller
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args))
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args))
    const hold = await service.during(locks.acquire('a', { signal }))
    await service.during(locks.acquire('a', { signal, wait: 0 }).catch(() => {}))
    await service.during(locks.acquire('a', { signal, wait: '2s' }).catch(() => {}))
    await service.during(hold.release())
    await service.during(locks.request('a', { signal }, () => {}))
    expect(listeners).toBe(0)
  })

  it('several locks are acquired together or not at all', async () => {
    const locks = service.client()
    const b = await service.during(locks.acquire('b'))
    const both = locks.acquire(['a', 'b'])
    await service.platform.advance(100)
    expect(state()).toEqual({ holds: 1, waiters: 1 })
    await service.during(b.release())
    expect((await service.during(both)).names).toEqual(['a', 'b'])
  })

  it('permits: n hold at once, each with a slot', async () => {
    const locks = service.client()
    const slots = await service.during(Promise.all([0, 1, 2].map(() => locks.acquire('gpu', { permits: 3 }))))
    expect(slots.map((hold) => hold.slot).sort()).toEqual([0, 1, 2])
    expect(await service.during(locks.tryAcquire('gpu', { permits: 3 }))).toBeNull()
  })

  it('shared holds of one generation have one token, the next exclusive one a greater one', async () => {
    const locks = service.client()
    const readers = await service.during(Promise.all([1, 2].map(() => locks.acquire('a', { mode: 'shared' }))))
    expect(readers[0]?.token).toBe(readers[1]?.token)
    const writer = locks.acquire('a')
    await service.platform.advance(1)
    for (const reader of readers) await service.during(reader.release())
    expect((await service.during(writer)).token).toBeGreaterThan(readers[0]?.token ?? 0n)
  })
})

describe('an abort that races the grant', () => {
  it('releases exactly that grant, whatever comes first', async () => {
    const locks = service.client()
    const other = service.client({}, { network: service.line() })
    // The release that grants, the push of the grant, and the abort, in every order of turns.
    for (let turn = 0; turn < 12; turn++) {
      const holder = await service.during(other.acquire('a'))
      const controller = new AbortController()
      const waiting = locks.acquire('a', { signal: controller.signal }).catch((error: unknown) => error)
      await settle()
      const released = holder.release()
      for (let i = 0; i < turn; i++) await Promise.resolve()
      controller.abort()
      await service.during(released)
      const outcome = await service.during(waiting)
      if (outcome instanceof Error) expect(outcome).toBeInstanceOf(AbortedError)
      else await service.during((outcome as { release(): Promise<unknown> }).release())
      await service.platform.advance(20)
      expect(state()).toEqual({ holds: 0, waiters: 0 })
    }
  })

  it('while the connection is down: the request is cancelled after the reconnect', async () => {
    const locks = service.client()
    const other = service.client({}, { network: service.line() })
    const holder = await service.during(other.acquire('a'))
    const controller = new AbortController()
    const waiting = locks.acquire('a', { signal: controller.signal }).catch((error: unknown) => error)
    await service.platform.advance(50)
    service.network.down.add(service.url)
    service.network.cutAll()
    await settle()
    controller.abort()
    expect(await waiting).toBeInstanceOf(AbortedError)
    await service.during(holder.release())
    expect(state()).toEqual({ holds: 1, waiters: 0 })
    service.network.down.clear()
    await service.platform.advance(3_000)
    expect(state()).toEqual({ holds: 0, waiters: 0 })
  })
})

describe('when the service is unreachable', () => {
  it('an acquire is unreachable, never "not held"', async () => {
    service.network.down.add(service.url)
    const locks = service.client({ connectTimeout: '2s' })
    await expect(service.during(locks.acquire('a'))).rejects.toBeInstanceOf(UnavailableError)
    await expect(service.during(locks.tryAcquire('a'))).rejects.toMatchObject({ code: 'unreachable', retryable: true })
    await expect(service.during(locks.request('a', { ifAvailable: true }, () => 1))).rejects.toBeInstanceOf(
      UnavailableError,
    )
  })

  it('a wait continues after a reconnect and keeps its place', async () => {
    const [one, two, three] = [service.client(), service.client({}, { network: service.line() }), service.client()]
    const holder = await service.during(two.acquire('a'))
    const first = one.acquire('a')
    await service.platform.advance(50)
    const second = three.acquire('a')
    await service.platform.advance(50)
    service.network.cutAll()
    await service.platform.advance(500)
    expect(state()).toEqual({ holds: 1, waiters: 2 })
    await service.during(holder.release())
    await service.during((await service.during(first)).release())
    await service.during((await service.during(second)).release())
  })

  it('a wait that outlives its session is retried on another one', async () => {
    const locks = service.client({ ttl: '2s' })
    const other = service.client({}, { network: service.line() })
    const holder = await service.during(other.acquire('a'))
    const waiting = locks.acquire('a', { wait: '60s' })
    await service.platform.advance(50)
    service.network.down.add(service.url)
    service.network.cutAll()
    await service.platform.advance(4_000)
    service.network.down.clear()
    await service.platform.advance(3_000)
    expect(state()).toEqual({ holds: 1, waiters: 1 })
    await service.during(holder.release())
    expect((await service.during(waiting)).state).toBe('held')
  })

  it('an outage longer than the session is only a part of the wait', async () => {
    const locks = service.client({ ttl: '2s', connectTimeout: '1s' })
    const other = service.client({}, { network: service.line() })
    const holder = await service.during(other.acquire('a'))
    const long = locks.acquire('a', { wait: '60s' })
    const short = locks.acquire('a', { wait: '8s' }).catch((error: unknown) => error)
    await service.platform.advance(50)
    service.network.down.add(service.url)
    service.network.cutAll()
    await service.platform.advance(20_000)
    expect(await short).toBeInstanceOf(UnavailableError)
    service.network.down.clear()
    await service.platform.advance(3_000)
    expect(state()).toEqual({ holds: 1, waiters: 1 })
    await service.during(holder.release())
    expect((await service.during(long)).state).toBe('held')
  })

  it('connecting ends when nothing needs the connection', async () => {
    service.network.down.add(service.url)
    const locks = service.client({ connectTimeout: '1s' })
    await expect(service.during(locks.acquire('a'))).rejects.toBeInstanceOf(UnavailableError)
    await service.platform.advance(60_000)
    expect(locks.status).toEqual({ state: 'idle' })
    expect(service.network.connects.length).toBeLessThan(12)
    expect(service.platform.timers).toBe(1)
    service.network.down.clear()
    expect((await service.during(locks.acquire('a'))).state).toBe('held')
  })

  it('the wait ends after `wait`, connected or not', async () => {
    const locks = service.client({ ttl: '60s' })
    const other = service.client({}, { network: service.line() })
    await service.during(other.acquire('a'))
    const start = service.platform.mono
    const waiting = locks.acquire('a', { wait: '5s' }).catch((error: unknown) => error)
    await service.platform.advance(50)
    service.network.down.add(service.url)
    service.network.cutAll()
    expect(await service.during(waiting)).toBeInstanceOf(AcquireTimeoutError)
    expect(service.platform.mono - start).toBeLessThan(5_100)
  })
})

describe('a late grant', () => {
  it('is not returned after the deadline of its session', async () => {
    const locks = service.client()
    const other = service.client({}, { network: service.line() })
    const holder = await service.during(other.acquire('a'))
    let hold: { state: string } | undefined
    const waiting = locks.acquire('a', { ttl: '2s', wait: '60s' })
    void waiting.then((granted) => (hold = granted))
    await service.platform.advance(50)
    service.network.holdBack = true
    await service.during(holder.release())
    service.platform.block(1_900)
    service.network.flush()
    await settle()
    expect(hold).toBeUndefined()
    expect((await service.during(waiting)).state).toBe('held')
  })

  it('whose hold was stolen before the caller saw it is not returned as held', async () => {
    const locks = service.client()
    const other = service.client({}, { network: service.line() })
    await service.during(locks.acquire('b'))
    service.network.holdBack = true
    const waiting = locks.acquire('a')
    await settle()
    expect(state().holds).toBe(2)
    await service.during(other.steal('a', { reason: 'x' }))
    service.network.flush()
    const hold = await service.during(waiting)
    expect(hold.state).toBe('held')
    expect(state().holds).toBe(2)
  })
})

describe('maxHold and renew: false', () => {
  it('maxHold ends a hold that is renewed', async () => {
    const hold = await service.during(service.client().acquire('a', { maxHold: '15s' }))
    await service.platform.advance(14_900)
    expect(hold.state).toBe('held')
    await service.platform.advance(200)
    expect(await hold.lost).toMatchObject({ reason: 'deadline' })
  })

  it('renew: false ends one TTL after the grant, whatever the wait took', async () => {
    const locks = service.client()
    const first = await service.during(locks.acquire('a'))
    const waiting = locks.acquire('a', { renew: false, ttl: '10s' })
    await service.platform.advance(20_000)
    await service.during(first.release())
    const hold = await service.during(waiting)
    expect(hold.remaining()).toBeGreaterThan(8_900)
    await service.platform.advance(9_100)
    expect(hold.state).toBe('lost')
  })

  it('and not later for its holder when the connection was cut meanwhile, though at the service the session was renewed', async () => {
    const locks = service.client()
    const other = service.client({}, { network: service.line() })
    const hold = await service.during(locks.acquire('a', { renew: false, ttl: '10s' }))
    const waiting = other.acquire('a')
    await service.platform.advance(5_000)
    service.network.cutAll()
    await service.platform.advance(3_900)
    expect(hold.state).toBe('held')
    await service.platform.advance(200)
    expect(hold.state).toBe('lost')
    // The next one has to wait for the TTL after the reconnect, and no longer.
    await service.platform.advance(3_000)
    expect(state().holds).toBe(1)
    await service.platform.advance(5_000)
    expect((await waiting).token).toBeGreaterThan(hold.token)
  })

  it('learns of a missed end after a reconnect', async () => {
    const line = service.line()
    const locks = service.client({}, { network: line })
    const other = service.client()
    const hold = await service.during(locks.acquire('a', { renew: false, ttl: '10s' }))
    line.cutAll()
    line.down.add(service.url)
    await service.during(other.steal('a', { reason: 'x' }))
    expect(hold.state).toBe('held')
    line.down.delete(service.url)
    await service.platform.advance(4_000)
    expect(hold.state).toBe('lost')
    expect(await hold.lost).toMatchObject({ reason: 'stolen' })
  })

  it('such a hold has a session of its own, which ends with it', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a', { renew: false }))
    await service.during(hold.release())
    await service.platform.advance(10)
    expect(service.member.state.machine.sessions.size).toBe(0)
    await service.during(locks.acquire('a'))
    await expect(service.during(locks.acquire('a', { renew: false, wait: 0 }))).rejects.toBeInstanceOf(BusyError)
    await service.platform.advance(10)
    expect(service.member.state.machine.sessions.size).toBe(1)
  })

  it('which also ends when it is stolen', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a', { maxHold: '1h' }))
    await service.during(locks.steal('a', { reason: 'x' }))
    await service.platform.advance(100)
    expect(hold.state).toBe('lost')
    expect(service.member.state.machine.sessions.size).toBe(0)
  })
})

describe('persistent and portable holds', () => {
  it('a persistent hold outlives its client, and is released with its secret', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a', { persistent: true }))
    expect(hold.remaining()).toBe(Number.POSITIVE_INFINITY)
    const text = hold.serialize()
    await service.during(locks.close())
    await service.platform.advance(60_000)
    const other = service.client()
    expect(await service.during(other.tryAcquire('a'))).toBeNull()
    const adopted = await service.during(other.adopt(text))
    expect(adopted.token).toBeGreaterThan(hold.token)
    expect(await service.during(adopted.release())).toEqual({ released: true })
    expect((await service.during(other.acquire('a'))).state).toBe('held')
  })

  it('a persistent hold has no deadline: it stays held when its session is lost, and can be released', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a', { persistent: true }))
    service.network.down.add(service.url)
    service.network.cutAll()
    await service.platform.advance(30_000)
    expect(hold.state).toBe('held')
    service.network.down.clear()
    expect(await service.during(hold.release())).toEqual({ released: true })
    expect(state()).toEqual({ holds: 0, waiters: 0 })
  })

  it('a portable hold is handed over: a new, greater token, and the old handle is lost (moved)', async () => {
    const one = service.client()
    const two = service.client({}, { network: service.line() })
    const hold = await service.during(one.acquire('a', { portable: true }))
    const adopted = await service.during(two.adopt(hold.serialize()))
    expect(adopted.token).toBeGreaterThan(hold.token)
    expect(await hold.lost).toMatchObject({ reason: 'moved' })
    await expect(
      service.during(two.adopt('leasehold-hold-1.portable.5.00000000000000000000000000000000')),
    ).rejects.toMatchObject({ code: expect.stringMatching(/not-holder|epoch-changed/) })
  })

  it('an ordinary hold cannot be serialized', async () => {
    const hold = await service.during(service.client().acquire('a'))
    expect(() => hold.serialize()).toThrow(InvalidError)
  })
})

describe('many', () => {
  it('10 000 waiters on one name cost one message per grant', async () => {
    const waiters = 10_000
    const locks = service.client({ wait: '2h' })
    const first = await service.during(locks.acquire('a'))
    let served = 0
    let release: Promise<unknown> = Promise.resolve()
    const all = Promise.all(
      Array.from({ length: waiters }, () =>
        locks.acquire('a').then((hold) => {
          served++
          release = hold.release()
          return release
        }),
      ),
    )
    await settle()
    await settle()
    expect(state().waiters).toBe(waiters)
    const pushes = () => service.network.received.filter((message) => message.kind === 'push').length
    const before = pushes()
    await service.during(first.release())
    await service.during(all, 50)
    expect(served).toBe(waiters)
    expect(pushes() - before).toBe(waiters)
    expect(state()).toEqual({ holds: 0, waiters: 0 })
  }, 60_000)

  it('a long wait does not block a busy client', async () => {
    const locks = service.client()
    const holder = service.client({}, { network: service.line() })
    const held = await service.during(holder.acquire('slow'))
    const slow = locks.acquire('slow', { wait: '1h' })
    for (let i = 0; i < 1_200; i++) await service.during(locks.request(`fast/${i % 7}`, () => {}))
    expect(service.member.state.machine.sessions.size).toBeLessThanOrEqual(4)
    await service.during(held.release())
    expect((await service.during(slow)).state).toBe('held')
  })
})
