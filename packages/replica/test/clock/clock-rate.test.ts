import { Writer } from '@leasehold/core'
import type { Entry } from '@leasehold/raft'
import { describe, expect, it } from 'vitest'
import { ClockRate } from '../../src/clock/clock-rate.js'
import { seeded } from '../support/sim-disk.js'

function stamped(stampMs: number, term = 3): Entry {
  const writer = new Writer(16)
  writer.varuint(Math.round(stampMs))
  return { term, index: 1, kind: 'normal', data: writer.take() }
}

interface Run {
  /** Rate of the leader's clock relative to this member's. */
  readonly rate?: number
  readonly seconds?: number
  readonly everyMs?: number
  /** Delay of entries at a given time. */
  readonly late?: (nowMs: number) => number
  readonly term?: (nowMs: number) => number
  /** The term of the entries; default: that of the leader. */
  readonly entryTerm?: number
}

/** All reports, with the second of each. */
function told({ rate = 1, seconds = 120, everyMs = 500, late = () => 5, term = () => 3, entryTerm }: Run): number[][] {
  const one = new ClockRate()
  const all: number[][] = []
  for (let now = 0; now < seconds * 1000; now += everyMs) {
    const stamp = 10_000_000 + (now - late(now)) * rate
    const percent = one.note(term(now), [stamped(stamp, entryTerm ?? term(now))], 50_000 + now)
    if (percent !== undefined) all.push([percent, now / 1000])
  }
  return all
}

describe('the rate of the leader’s clock', () => {
  it('is reported once when it is 20 % too fast, after three windows', () => {
    expect(told({ rate: 1.2 })).toEqual([[20, 30]])
  })

  it('is reported again in another term', () => {
    expect(told({ rate: 1.2, term: (now) => (now < 60_000 ? 3 : 4) })).toHaveLength(2)
  })

  it('is not reported within the bound, nor when it is slow', () => {
    for (const rate of [1, 1.05, 1.08, 0.8, 0.5]) expect(told({ rate }), String(rate)).toEqual([])
  })

  it('is detected without false reports when entries are late by up to two seconds', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const draw = seeded(seed)
      const late = () => draw(2000)
      expect(told({ late, everyMs: 100 }), `seed ${seed}`).toEqual([])
      expect(told({ late, everyMs: 100, rate: 1.2 }), `seed ${seed}`).toHaveLength(1)
    }
  })

  it('is not reported after a single delay, nor while the member catches up', () => {
    expect(told({ late: (now) => (now < 25_000 ? 8000 : 5) })).toEqual([])
    // An hour of entries in a minute.
    expect(told({ late: (now) => Math.max(0, 3_600_000 - 60 * now) })).toEqual([])
    expect(told({ late: (now) => Math.max(0, 30_000 - now / 2), entryTerm: 2 })).toEqual([])
  })

  it('is not judged from a few entries', () => {
    expect(told({ rate: 1.2, everyMs: 4000 })).toEqual([])
  })
})
