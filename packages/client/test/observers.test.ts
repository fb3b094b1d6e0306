import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { addObserver, type Begun, type Ended, type ObservedKind } from '../src/index.js'
import type { TestService } from './support/service.js'
import { suite } from './support/suite.js'

const current = suite()
let service: TestService
let seen: { begun: Begun; ended?: Ended }[] = []
let off = () => {}
beforeEach(() => {
  service = current.service
  seen = []
})
afterEach(() => off())

function look(wanted?: ObservedKind): void {
  off = addObserver({
    wants: (kind) => wanted === undefined || kind === wanted,
    begin(begun) {
      const entry: { begun: Begun; ended?: Ended } = { begun }
      seen.push(entry)
      return (ended) => {
        entry.ended = ended
      }
    },
  })
}

function of<K extends ObservedKind>(kind: K): (Extract<Begun, { kind: K }> & { ended: Ended | undefined })[] {
  return seen
    .filter(({ begun }) => begun.kind === kind)
    .map(({ begun, ended }) => ({ ...(begun as Extract<Begun, { kind: K }>), ended }))
}

describe('an observer', () => {
  it('sees an acquire, its wait, the hold and its release, from beginning to end', async () => {
    look()
    const locks = service.client({ namespace: 'team' })
    const hold = await service.during(locks.acquire('a', { ttl: '10s', wait: '5s' }), 1)
    expect(of('acquire')).toMatchObject([{ names: ['team/a'], ttlMs: 10_000, waitMs: 5_000, ended: { hold } }])
    expect(of('wait')).toMatchObject([{ names: ['team/a'], ended: {} }])
    expect(of('hold')).toEqual([{ kind: 'hold', hold, ended: undefined }])
    await service.during(hold.release())
    expect(of('hold')).toEqual([{ kind: 'hold', hold, ended: {} }])
    expect(of('release')).toEqual([{ kind: 'release', hold, ended: { released: true } }])
  })

  it('sees why an acquire has failed', async () => {
    const locks = service.client()
    await service.during(locks.acquire('a'))
    look()
    await expect(service.during(locks.acquire('a', { wait: 0 }))).rejects.toMatchObject({ code: 'busy' })
    expect(of('acquire')).toMatchObject([{ ended: { error: { code: 'busy' } } }])
  })

  it('sees renewals, and how late they are sent', async () => {
    look('renew')
    await service.during(service.client().acquire('a', { ttl: '9s' }), 1)
    await service.platform.advance(3_100)
    expect(of('renew')).toMatchObject([{ holds: 1, ended: {} }])
    expect(of('renew')[0]?.lagMs).toBeLessThan(50)
  })

  it('sees a loss by the local deadline, which is no overlap', async () => {
    look('hold')
    await service.during(service.client().acquire('a', { ttl: '10s' }), 1)
    service.network.down.add(service.url)
    service.network.cutAll()
    await service.platform.advance(20_000)
    expect(of('hold')).toMatchObject([{ ended: { error: { code: 'lost', reason: 'deadline' } } }])
    expect(of('hold')[0]?.ended).not.toHaveProperty('overlapMaxMs')
  })

  it('sees for how long a stolen hold may have been used', async () => {
    look('hold')
    const locks = service.client()
    await service.during(locks.acquire('a', { ttl: '10s' }), 1)
    await service.platform.advance(1_000)
    await service.during(locks.steal('a', { reason: 'test' }))
    const [hold] = of('hold')
    expect(hold?.ended).toMatchObject({ error: { code: 'lost', reason: 'stolen' } })
    expect(hold?.ended?.overlapMaxMs).toBeGreaterThanOrEqual(1_000)
    expect(hold?.ended?.overlapMaxMs).toBeLessThan(2_000)
  })

  it('that throws is reported and changes nothing', async () => {
    const complaints = vi.spyOn(console, 'error').mockImplementation(() => {})
    off = addObserver({
      wants: () => true,
      begin: () => {
        throw new Error('broken')
      },
    })
    const hold = await service.during(service.client().acquire('a'))
    expect(hold.state).toBe('held')
    expect(complaints).toHaveBeenCalledWith('leasehold: an observer has thrown', expect.any(Error))
    complaints.mockRestore()
  })

  it('is not called after its removal, and their number is limited', async () => {
    look()
    off()
    await service.during(service.client().acquire('a'))
    expect(seen).toEqual([])
    const offs: (() => void)[] = []
    const add = () => offs.push(addObserver({ wants: () => false, begin: () => () => {} }))
    expect(() => {
      for (let i = 0; i <= 16; i++) add()
    }).toThrow(RangeError)
    for (const each of offs) each()
  })
})
