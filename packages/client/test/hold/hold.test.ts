import { HoldLostError, InvalidError, NotHolderError, splitToken } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import { trackEffect } from '../../src/index.js'
import { settle } from '../support/platform.js'
import { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

/** A hold of `a` with a TTL of 10 s and a margin of 1 s, taken at elapsed time 0. */
async function held(options = {}) {
  const locks = service.client()
  const hold = await service.during(locks.acquire('a', { ttl: '10s', ...options }), 1)
  return { locks, hold }
}

describe('one session per (client, TTL)', () => {
  it('is opened once even under concurrent first use', async () => {
    const locks = service.client()
    const holds = await service.during(Promise.all(['a', 'b', 'c', 'd'].map((name) => locks.acquire(name))))
    expect(holds).toHaveLength(4)
    expect(service.member.log.filter((command) => command.kind === 'openSession')).toHaveLength(1)
  })

  it('is another one for another TTL', async () => {
    const locks = service.client()
    await service.during(Promise.all([locks.acquire('a'), locks.acquire('b', { ttl: '20s' }), locks.acquire('c')]))
    expect(service.member.log.filter((command) => command.kind === 'openSession')).toHaveLength(2)
  })

  it('that cannot be opened rejects all pending acquires, and is retried by the next acquire', async () => {
    service.network.down.add(service.url)
    const locks = service.client({ connectTimeout: '1s' })
    const both = Promise.allSettled([locks.acquire('a'), locks.acquire('b')])
    const outcomes = await service.during(both)
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: 'unreachable' } })
    service.network.down.clear()
    expect((await service.during(locks.acquire('a'))).state).toBe('held')
  })

  it('is renewed at TTL/3', async () => {
    await held()
    const renewals = () => service.member.log.filter((command) => command.kind === 'renew').length
    await service.platform.advance(3_200)
    expect(renewals()).toBe(0)
    await service.platform.advance(200)
    expect(renewals()).toBe(1)
    await service.platform.advance(3_300)
    expect(renewals()).toBe(2)
  })

  it('stays alive for as long as its client is connected', async () => {
    const { hold } = await held()
    await service.platform.advance(300_000)
    expect(hold.state).toBe('held')
    expect(hold.remaining()).toBeGreaterThan(5_000)
  })

  it('outlives transient errors of renewals: one error never drops a hold', async () => {
    const { hold } = await held()
    await service.platform.advance(3_000)
    service.member.refuse = 'storage'
    await service.platform.advance(3_000)
    expect(hold.state).toBe('held')
    service.member.refuse = undefined
    await service.platform.advance(20_000)
    expect(hold.state).toBe('held')
    await service.platform.advance(3_000)
    service.network.blackHole = true
    await service.platform.advance(3_000)
    service.network.blackHole = false
    service.network.cutAll()
    await service.platform.advance(20_000)
    expect(hold.state).toBe('held')
  })
})

describe('a hold is held until', () => {
  it('it is released: the state changes before the release is sent', async () => {
    const { hold } = await held()
    const sent = service.network.toServer
    const released = hold.release()
    expect(hold.state).toBe('released')
    expect(service.network.toServer).toBe(sent)
    expect(await service.during(released)).toEqual({ released: true })
    expect(await hold.lost).toBeNull()
    expect(hold.signal.aborted).toBe(false)
  })

  it('the service reports its end: stolen', async () => {
    const { hold } = await held()
    const other = service.client()
    expect(await service.during(other.steal('a', { reason: 'stuck' }))).toEqual({ stolen: 1 })
    expect(hold.state).toBe('lost')
    expect(hold.signal.aborted).toBe(true)
    expect(hold.signal.reason).toMatchObject({ code: 'lost', reason: 'stolen' })
    expect((await hold.lost)?.message).toContain('stuck')
  })

  it('the service reports the end of its session: ended by an operator', async () => {
    const { hold } = await held()
    const view = await service.during(service.client().query())
    const session = splitToken(view.sessions[0]?.id ?? 0n).serial
    service.member.submit({ kind: 'closeSession', session, by: 'operator', reason: '' }, () => {})
    await service.platform.advance(1)
    expect(await hold.lost).toMatchObject({ reason: 'closed' })
  })

  it('the local deadline passes: send time of the last acknowledged renewal + TTL − margin', async () => {
    const { hold } = await held()
    expect(hold.remaining()).toBe(9_000 - (service.platform.mono - 1_000))
    service.network.blackHole = true
    const before = hold.remaining()
    await service.platform.advance(before - 1)
    expect(hold.state).toBe('held')
    await service.platform.advance(1)
    expect(hold.state).toBe('lost')
    expect(hold.signal.reason).toBeInstanceOf(HoldLostError)
    expect(await hold.lost).toMatchObject({ reason: 'deadline' })
  })

  it('counts from the sending of the opening, never from the receipt of its answer', async () => {
    service.network.holdBack = true
    const locks = service.client()
    const acquiring = locks.acquire('a', { ttl: '10s' })
    await service.platform.advance(10)
    service.network.flush()
    service.network.holdBack = true
    await service.platform.advance(2_000)
    service.network.flush()
    const hold = await service.during(acquiring, 1)
    expect(hold.remaining()).toBeLessThanOrEqual(9_000 - 2_000)
  })

  it('counts from the sending of the acknowledged renewal, not of a later one that was not answered', async () => {
    const { hold } = await held()
    const start = service.platform.mono - (9_000 - hold.remaining())
    await service.platform.advance(3_400)
    expect(hold.remaining()).toBeGreaterThan(8_900)
    service.network.blackHole = true
    const renewedAt = service.platform.mono - (9_000 - hold.remaining())
    expect(Math.abs(renewedAt - start - 10_000 / 3)).toBeLessThan(2)
    await service.platform.advance(renewedAt + 9_000 - service.platform.mono - 1)
    expect(hold.state).toBe('held')
    await service.platform.advance(2)
    expect(hold.state).toBe('lost')
  })

  it('counts from the sending of a renewal, however long its answer takes', async () => {
    const { hold } = await held()
    service.network.holdBack = true
    await service.platform.advance(4_500)
    service.network.flush()
    await service.platform.advance(1)
    // Sent at about 3 333 ms, answered at 4 500 ms.
    expect(hold.remaining()).toBeGreaterThan(9_000 - 1_200)
    expect(hold.remaining()).toBeLessThan(9_000 - 1_100)
  })

  it('a loss resolves what waits for it, without a poll', async () => {
    const { hold } = await held()
    const reasons: unknown[] = []
    hold.signal.addEventListener('abort', () => reasons.push(hold.signal.reason))
    void hold.lost.then((error) => reasons.push(error))
    service.network.blackHole = true
    await service.platform.advance(10_000)
    expect(reasons).toHaveLength(2)
    for (const reason of reasons) expect(reason).toBeInstanceOf(HoldLostError)
  })

  it('only its first end counts', async () => {
    const { locks, hold } = await held()
    await service.during(locks.steal('a', { reason: 'first' }))
    expect(hold.state).toBe('lost')
    service.network.blackHole = true
    await service.platform.advance(20_000)
    expect(await hold.lost).toMatchObject({ reason: 'stolen' })
    expect(await hold.release()).toEqual({ released: false })
    expect(hold.state).toBe('lost')
  })

  it('and never becomes held again', async () => {
    const { hold } = await held()
    service.network.holdBack = true
    await service.platform.advance(9_500)
    expect(hold.state).toBe('lost')
    service.network.flush()
    await service.platform.advance(20_000)
    expect(hold.state).toBe('lost')
    expect(() => hold.assertHeld()).toThrow(HoldLostError)
    expect(hold.remaining()).toBe(0)
  })

  it('ends before the service can grant the lock to another session', async () => {
    const { hold } = await held()
    service.network.blackHole = true
    const other = service.client({}, { network: service.line() })
    let stillHeld: boolean | undefined
    const taken = other.acquire('a').then((next) => {
      stillHeld = hold.state === 'held'
      return next
    })
    const next = await service.during(taken)
    expect(stillHeld).toBe(false)
    expect(next.token).toBeGreaterThan(hold.token)
  })
})

describe('an overdue renewal', () => {
  it('raises a warning before the loss', async () => {
    const { locks, hold } = await held()
    const order: string[] = []
    hold.on('warning', (warning) => order.push(`hold ${warning.kind} ${hold.state}`))
    locks.on('warning', (warning) => order.push(`locks ${warning.kind} ${warning.hold.name}`))
    hold.signal.addEventListener('abort', () => order.push('abort'))
    service.network.blackHole = true
    await service.platform.advance(10_000)
    expect(order).toEqual(['hold renewal-overdue held', 'locks renewal-overdue a', 'abort'])
  })

  it('warns once, and again only after a renewal in between', async () => {
    const { hold } = await held()
    let warnings = 0
    hold.on('warning', () => warnings++)
    for (let i = 0; i < 2; i++) {
      service.network.blackHole = true
      await service.platform.advance(5_400)
      service.network.blackHole = false
      service.network.cutAll()
      await service.platform.advance(20_000)
    }
    expect(warnings).toBe(2)
    expect(hold.state).toBe('held')
  })

  it('warns also when the deadline has passed before any timer ran, and is lost by then', async () => {
    const { hold } = await held()
    const seen: string[] = []
    hold.on('warning', (warning) => seen.push(`${warning.kind} ${hold.state}`))
    service.platform.block(9_500)
    expect(hold.state).toBe('lost')
    expect(seen).toEqual(['renewal-overdue lost'])
  })

  it('listeners that throw are reported and do not affect others', async () => {
    const { hold } = await held()
    hold.on('warning', () => {
      throw new Error('mine')
    })
    service.network.blackHole = true
    await service.platform.advance(10_000)
    expect(service.platform.reports).toHaveLength(1)
    service.platform.reports.length = 0
    expect(hold.state).toBe('lost')
  })

  it('a removed listener is not called', async () => {
    const { hold } = await held()
    let heard = 0
    const off = hold.on('warning', () => heard++)
    off()
    service.network.blackHole = true
    await service.platform.advance(10_000)
    expect(heard).toBe(0)
  })
})

describe('when the local deadline passes', () => {
  it('the session is abandoned: no renewal or release on it, and a new one for later acquires', async () => {
    const { locks, hold } = await held()
    service.network.blackHole = true
    await service.platform.advance(9_100)
    expect(hold.state).toBe('lost')
    const before = service.member.log.length
    service.network.blackHole = false
    service.network.cutAll()
    expect(await service.during(hold.release())).toEqual({ released: false })
    const next = await service.during(locks.acquire('a', { ttl: '10s' }))
    const after = service.member.log.slice(before)
    const oldSession = service.member.log.find((command) => command.kind === 'acquire')
    for (const command of after) {
      if ('session' in command) expect(command.session).not.toBe(oldSession?.session)
    }
    expect(next.token).toBeGreaterThan(hold.token)
  })

  it('the old session ends by its TTL, so that lock delays count', async () => {
    const { locks, hold } = await held({ lockDelay: '30s' })
    service.network.blackHole = true
    await service.platform.advance(9_100)
    expect(hold.state).toBe('lost')
    service.network.blackHole = false
    service.network.cutAll()
    const lostAt = service.platform.mono
    await service.during(locks.acquire('a', { wait: '60s' }))
    expect(service.platform.mono - lostAt).toBeGreaterThan(30_000)
  })
})

describe('release', () => {
  it('of a lost hold resolves { released: false } at once', async () => {
    const { hold } = await held()
    service.platform.block(9_500)
    const sent = service.network.toServer
    expect(await hold.release()).toEqual({ released: false })
    expect(service.network.toServer).toBe(sent)
  })

  it('twice has one effect and one outcome', async () => {
    const { hold } = await held()
    const both = await service.during(Promise.all([hold.release(), hold.release()]))
    expect(both).toEqual([{ released: true }, { released: true }])
    expect(service.member.log.filter((command) => command.kind === 'release')).toHaveLength(1)
  })

  it('of a hold that the service no longer has does not affect another hold', async () => {
    const { hold } = await held()
    service.network.holdBack = true
    const other = service.client({}, { network: service.line() })
    await service.during(other.steal('a', { reason: 'x' }))
    const theirs = await service.during(other.acquire('a'))
    const released = hold.release()
    await settle()
    service.network.flush()
    expect(await service.during(released)).toEqual({ released: false })
    expect(theirs.state).toBe('held')
    expect(await service.during(service.client().tryAcquire('a'))).toBeNull()
  })

  it('waits for guarded effects in flight under this hold', async () => {
    const { hold } = await held()
    let finish: () => void = () => {}
    void trackEffect(hold, new Promise<void>((resolve) => (finish = resolve)))
    const released = hold.release()
    await service.platform.advance(1_000)
    expect(hold.state).toBe('held')
    expect(service.member.log.some((command) => command.kind === 'release')).toBe(false)
    expect(() => trackEffect(hold, Promise.resolve())).toThrow(NotHolderError)
    finish()
    expect(await service.during(released)).toEqual({ released: true })
  })

  it('waits for effects no longer than the deadline', async () => {
    const { hold } = await held()
    void trackEffect(hold, new Promise(() => {}))
    service.network.blackHole = true
    const released = hold.release()
    expect(await service.during(released)).toEqual({ released: false })
    expect(hold.state).toBe('lost')
  })

  it('a failed effect does not fail the release', async () => {
    const { hold } = await held()
    const effect = trackEffect(hold, Promise.reject(new Error('mine')))
    await expect(effect).rejects.toThrow('mine')
    expect(await service.during(hold.release())).toEqual({ released: true })
  })

  it('that is not confirmed rejects, and the service frees the lock by the TTL', async () => {
    const { hold } = await held()
    service.network.blackHole = true
    const outcome = await service.during(hold.release().catch((error: unknown) => error))
    expect(outcome).toMatchObject({ retryable: expect.any(Boolean), message: expect.stringContaining('release') })
    service.network.blackHole = false
    const other = service.client({}, { network: service.line() })
    expect((await service.during(other.acquire('a'))).state).toBe('held')
  })

  it('waits for a dead service no longer than for a connection, however long the TTL', async () => {
    const locks = service.client({ ttl: '10m', connectTimeout: '2s' })
    const hold = await service.during(locks.acquire('a'))
    service.network.blackHole = true
    const before = service.platform.mono
    await service.during(hold.release().catch((error: unknown) => error))
    expect(service.platform.mono - before).toBeLessThanOrEqual(2_010)
    // It is resent after the reconnect, although its caller no longer waits.
    service.network.blackHole = false
    service.network.cutAll()
    const other = service.client({}, { network: service.line() })
    expect((await service.during(other.acquire('a', { wait: '5s' }))).state).toBe('held')
  })

  it('asyncDispose never rejects', async () => {
    const { locks, hold } = await held()
    const warnings: string[] = []
    locks.on('warning', (warning) => warnings.push(warning.kind))
    service.network.blackHole = true
    await service.during(hold[Symbol.asyncDispose]())
    expect(warnings).toContain('release-failed')
  })

  it('whose answer is lost is repeated with its number and reported as done', async () => {
    const { hold } = await held()
    service.network.holdBack = true
    const released = hold.release()
    await settle()
    expect(service.member.log.at(-1)?.kind).toBe('release')
    service.network.cutAll()
    service.network.holdBack = false
    expect(await service.during(released)).toEqual({ released: true })
    const releases = service.member.log.filter((command) => command.kind === 'release')
    expect(releases).toHaveLength(2)
    expect(releases[0]).toMatchObject({ request: (releases[1] as { request: number }).request })
  })
})

describe('the members of a hold', () => {
  it('has tokens, slots and modes by name', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire(['x', { name: 'y', mode: 'shared' }, { name: 'z', permits: 3 }]))
    expect(hold.names).toEqual(['x', 'y', 'z'])
    expect(hold.token).toBe(hold.tokenOf('x'))
    expect(hold.tokenOf('y')).toBeGreaterThan(0n)
    expect(hold.slotOf('z')).toBe(0)
    expect(hold.slotOf('x')).toBeUndefined()
    expect(hold.slot).toBe(0)
    expect(hold.mode).toBe('exclusive')
    expect(() => hold.tokenOf('w')).toThrow(InvalidError)
  })

  it('toJSON has the token as text and no secret', async () => {
    const { hold } = await held({ portable: true })
    const json = JSON.parse(JSON.stringify(hold))
    expect(json).toMatchObject({ name: 'a', state: 'held', token: hold.token.toString() })
    expect(JSON.stringify(hold)).not.toContain(hold.serialize().split('.').at(-1))
  })

  it('has a deadline by the wall clock', async () => {
    const { hold } = await held()
    expect(hold.deadline.getTime() - service.platform.wall).toBeCloseTo(hold.remaining(), -1)
  })

  it('knows only one event', async () => {
    const { hold } = await held()
    // @ts-expect-error: no such event
    expect(() => hold.on('lost', () => {})).toThrow(InvalidError)
  })

  it('creates an AbortController only on demand', async () => {
    const before = service.platform.controllers
    const { hold } = await held()
    await service.during(hold.release())
    expect(service.platform.controllers).toBe(before)
  })
})
