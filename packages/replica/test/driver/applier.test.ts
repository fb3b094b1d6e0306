import { type Event, type Index, LockState } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { Applier } from '../../src/driver/applier.js'

const event: Event = { kind: 'put', key: 'k', version: 1n }

describe('installing a snapshot', () => {
  it('takes its state, index and term, and forgets the events of before: those in between are unknown', () => {
    const before = { epoch: 1, apply: () => ({ results: [], pushes: [], events: [event] }) } as unknown as LockState
    const applier = new Applier(before, 3, 1, { events: 100, bytes: 100_000 })
    applier.apply({ kind: 'normal', index: 4, term: 1, data: new Uint8Array(0) })
    applier.bytesSinceSnapshot = 500
    expect(applier.since({ epoch: 1, index: 4 as Index, ordinal: 0 })).toHaveLength(1)
    const state = LockState.create({ epoch: 1 })
    applier.install(state, 20, 6)
    expect(applier).toMatchObject({ index: 20, term: 6, bytesSinceSnapshot: 0 })
    expect(applier.state).toBe(state)
    expect(applier.since({ epoch: 1, index: 4 as Index, ordinal: 0 })).toBeUndefined()
    expect(applier.since({ epoch: 1, index: 19 as Index, ordinal: 0 })).toBeUndefined()
    expect(applier.since({ epoch: 1, index: 21 as Index, ordinal: 0 })).toEqual([])
  })

  it('is refused when it is not ahead', () => {
    const applier = new Applier(LockState.create({ epoch: 1 }), 3, 1, { events: 100, bytes: 100_000 })
    expect(() => applier.install(LockState.create({ epoch: 1 }), 3, 1)).toThrow(/snapshot 3 is installed over 3/)
  })

  it('is followed by the entry behind it, whose term counts then', () => {
    const applier = new Applier(LockState.create({ epoch: 1 }), 3, 1, { events: 100, bytes: 100_000 })
    applier.install(LockState.create({ epoch: 1 }), 20, 6)
    const entry = { kind: 'normal' as const, data: new Uint8Array(0) }
    expect(() => applier.apply({ ...entry, index: 22, term: 7 })).toThrow(/entry 22 is applied after 20/)
    applier.apply({ ...entry, index: 21, term: 7 })
    expect(applier).toMatchObject({ index: 21, term: 7 })
  })
})
