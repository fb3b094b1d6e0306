import { AcquireTimeoutError, InvalidError, LimitError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
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

describe('slots of once', () => {
  it('a second call returns at once while the slot runs, however long that takes', async () => {
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

  it('a late replica runs a slot that has not run, although a later one has', async () => {
    const locks = service.client()
    const run = (slot: string | Date) => service.during(locks.once('late', { slot }, () => slot))
    expect(await run('2026-11-29T03:05Z')).toMatchObject({ ran: true })
    expect(await run('2026-11-29T03:00Z')).toMatchObject({ ran: true })
    expect(await run('2026-11-29T03:00Z')).toEqual({ ran: false })
    expect(await run(new Date(0))).toMatchObject({ ran: true })
    expect(await run('1970-01-01T00:00:00.000Z')).toEqual({ ran: false })
  })

  it('old times are forgotten, and count as run; the register does not grow', async () => {
    const locks = service.client()
    const run = (slot: string) => service.during(locks.once('many', { slot }, () => slot))
    const minute = (n: number) => new Date(Date.UTC(2026, 5, 1) + n * 60_000).toISOString()
    for (let n = 1; n <= 130; n++) expect(await run(minute(n))).toMatchObject({ ran: true })
    expect(await run(minute(9))).toEqual({ ran: false })
    expect(await run(minute(0))).toEqual({ ran: false })
    expect(await run(minute(131))).toMatchObject({ ran: true })
    const kept = (await service.during(locks.register('once/many').get()))?.value as { ran: string[] }
    expect(kept.ran).toHaveLength(100)
  })

  it('a slot without an order runs, whatever ran before', async () => {
    const locks = service.client()
    const run = (slot: string) => service.during(locks.once('names', { slot }, () => slot))
    for (let n = 130; n > 0; n--) expect(await run(`tick-${n}`)).toMatchObject({ ran: true })
    for (let n = 130; n > 0; n--) expect(await run(`tick-${n}`)).toEqual({ ran: false })
    expect(await run('2026-11-29T03:00Z')).toMatchObject({ ran: true })
    expect(await run('11/28/2026')).toMatchObject({ ran: true })
    expect(await run('tick-0')).toMatchObject({ ran: true })
  })

  it('one that cannot be remembered is rejected, until the oldest is a day old', async () => {
    const locks = service.client()
    const run = (slot: string) => service.during(locks.once('full', { slot }, () => slot))
    for (let n = 0; n < 300; n++) expect(await run(`${n}`.padEnd(180, '-'))).toMatchObject({ ran: true })
    const next = async (): Promise<void> => {
      for (let n = 300; n < 1_000; n++) await run(`${n}`.padEnd(180, '-'))
    }
    const error = await next().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(LimitError)
    expect(await run('0'.padEnd(180, '-'))).toEqual({ ran: false })
    expect(await run('2026-11-29T03:00Z')).toMatchObject({ ran: true })
    service.platform.wall += 24 * 3_600_000
    expect(await run('next')).toMatchObject({ ran: true })
  })

  it('slots of an earlier version count as run, and what it forgot counts only for times', async () => {
    const locks = service.client()
    await service.during(
      locks.request('once/old', async (hold) => {
        const value = { ran: ['b', '2026-11-29T03:00Z'], forgotten: 'week-9' }
        await locks.register('once/old').put(value, { fence: hold, ifVersion: 0n })
      }),
    )
    const run = (slot: string) => service.during(locks.once('old', { slot }, () => slot))
    expect(await run('b')).toEqual({ ran: false })
    expect(await run('2026-11-29T03:00:00.000Z')).toEqual({ ran: false })
    expect(await run('a')).toMatchObject({ ran: true })
    expect(await run('b')).toEqual({ ran: false })
  })
})
