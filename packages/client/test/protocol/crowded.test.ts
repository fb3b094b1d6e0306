import { AcquireTimeoutError } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import type { Hold, Locks } from '../../src/index.js'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const at = suite()

/** More than the numbers that a session may have in use. */
const MANY = 1_300

/** In one session: each acquire is answered before the window is full. */
async function holdsOf(service: TestService, locks: Locks, count = MANY): Promise<Hold[]> {
  const holds: Hold[] = []
  while (holds.length < count) {
    const from = holds.length
    const part = Array.from({ length: Math.min(250, count - from) }, (_, i) => locks.acquire(`many/${from + i}`))
    holds.push(...(await service.during(Promise.all(part))))
  }
  expect(service.member.state.machine.sessions.size).toBe(1)
  return holds
}

/** A client with many holds that waits for one more lock, which keeps the lowest request number of its session open. */
async function waitingBesideMany(service: TestService) {
  const locks = service.client()
  const holds = await holdsOf(service, locks)
  const other = service.client()
  const taken = await service.during(other.acquire('x'))
  const controller = new AbortController()
  const waiting = locks.acquire('x', { wait: Number.POSITIVE_INFINITY, signal: controller.signal })
  waiting.catch(() => {})
  await service.platform.advance(50)
  const { machine } = service.member.state
  expect(machine.waiters.size).toBe(1)
  return { locks, holds, taken, controller, waiting, machine }
}

describe('while a waiter blocks the window of request numbers', () => {
  it('all holds are released', async () => {
    const { service } = at
    const { holds, taken, waiting, machine } = await waitingBesideMany(service)
    const released = await service.during(Promise.all(holds.map((hold) => hold.release())), 10, 3_000)
    expect(released.every((one) => one.released)).toBe(true)
    expect(machine.holds.size).toBe(1)
    await service.during(taken.release())
    expect((await service.during(waiting)).state).toBe('held')
  })

  it('the waiter can still be cancelled: its lock does not stay granted without an owner', async () => {
    const { service } = at
    const { holds, taken, controller, waiting, machine } = await waitingBesideMany(service)
    await service.during(Promise.all(holds.map((hold) => hold.release())), 10, 3_000)
    controller.abort()
    await expect(service.during(waiting)).rejects.toMatchObject({ code: 'aborted' })
    await service.platform.advance(50)
    expect(machine.waiters.size).toBe(0)
    await service.during(taken.release())
    expect(machine.holds.size).toBe(0)
  })

  it('holds are released once, also when the answers are lost', async () => {
    const { service } = at
    const { holds, machine, locks } = await waitingBesideMany(service)
    const ended: unknown[] = []
    locks.on('warning', (warning) => ended.push(warning))
    service.network.cutAfter = service.network.toServer + service.network.toClient + 700
    const releases = holds.map((hold) => hold.release())
    await service.platform.advance(200)
    service.network.cutAfter = Number.POSITIVE_INFINITY
    const released = await service.during(Promise.all(releases), 10, 5_000)
    expect(released.every((one) => one.released)).toBe(true)
    expect(machine.holds.size).toBe(1)
    expect(ended).toEqual([])
  })
})

describe('more releases than there are request numbers', () => {
  it('end with the session when the service does not return', async () => {
    const { service } = at
    const locks = service.client({ connectTimeout: '1s' })
    const holds = await holdsOf(service, locks)
    service.network.down.add(service.url)
    service.network.cutAll()
    const releases = Promise.allSettled(holds.map((hold) => hold.release()))
    const outcomes = await service.during(releases, 10, 3_000)
    // Those that were handed to the dying connection may have arrived.
    const code = expect.stringMatching(/^(unreachable|unknown-outcome)$/)
    for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { code } })
    // Its deadline passes with all of them open.
    await service.platform.advance(12_000)
    service.network.down.clear()
    await expect(service.during(locks.acquire('many/0', { wait: '1s' }))).resolves.toMatchObject({ state: 'held' })
  })

  it('do not keep a client from closing', async () => {
    const { service } = at
    const locks = service.client()
    const holds = await holdsOf(service, locks)
    const releases = Promise.allSettled(holds.map((hold) => hold.release()))
    await service.during(locks.close())
    expect((await releases).length).toBe(MANY)
    expect(service.member.state.machine.holds.size).toBe(0)
  })

  it('are sent, when the service is back, after their callers have given up', async () => {
    const { service } = at
    const locks = service.client({ connectTimeout: '1s' })
    const holds = await holdsOf(service, locks)
    service.network.down.add(service.url)
    service.network.cutAll()
    await service.during(Promise.allSettled(holds.map((hold) => hold.release())), 10, 3_000)
    expect(service.member.state.machine.holds.size).toBe(MANY)
    service.network.down.clear()
    await service.platform.advance(3_000)
    expect(service.member.state.machine.holds.size).toBe(0)
  })
})

describe('more requests at once than one session takes', () => {
  it('go to several sessions: writes of registers', async () => {
    const { service } = at
    const locks = service.client()
    const writes = Array.from({ length: 700 }, (_, i) => locks.register(`r/${i}`).put(i))
    await service.during(Promise.all(writes))
    expect(service.member.state.machine.registers.size).toBe(700)
  })

  it('go to several sessions: adoptions', async () => {
    const { service } = at
    const [locks, heir] = [service.client(), service.client()]
    const acquires = Array.from({ length: 700 }, (_, i) => locks.acquire(`p/${i}`, { portable: true }))
    const texts = (await service.during(Promise.all(acquires))).map((hold) => hold.serialize())
    const adopted = await service.during(Promise.all(texts.map((text) => heir.adopt(text))))
    expect(adopted.every((hold) => hold.state === 'held')).toBe(true)
  })

  it('wait no longer than their timeout', async () => {
    const { service } = at
    const [locks, other] = [service.client(), service.client()]
    await service.during(other.acquire('x'))
    const waiting = Array.from({ length: 700 }, () => locks.acquire('x', { wait: '1s' }))
    for (const outcome of await service.during(Promise.allSettled(waiting))) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(AcquireTimeoutError) })
    }
    await service.platform.advance(1_000)
    expect(service.member.state.machine.waiters.size).toBe(0)
  })
})
