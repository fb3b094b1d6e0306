import type { Cursor, Event, Index } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { Flusher } from '../../src/driver/flusher.js'
import { EventHistory } from '../../src/driver/event-history.js'
import { LeaderClock } from '../../src/clock/leader-clock.js'
import { settingsOf } from '../../src/replica-options.js'
import type { Log } from '../../src/log/log.js'
import { decodeMeta, encodeMeta } from '../../src/cluster-meta.js'
import { append, entries, indexes, openLog } from '../support/logs.js'
import { SimDisk } from '../support/sim-disk.js'
import { SimClock, World } from '../support/world.js'

describe("leader's clock", () => {
  it('goes on from the highest stamp', () => {
    const clock = new LeaderClock(1000, 50, 100)
    expect(clock.stamp(130, 1000)).toBe(1080)
    expect(clock.stamp(130, 1000)).toBe(1080)
  })

  it('counts at most two ticks between two readings', () => {
    const clock = new LeaderClock(0, 0, 100)
    expect(clock.read(20_000)).toBe(200)
    expect(clock.read(20_050)).toBe(250)
    expect(clock.read(19_000)).toBe(250)
    expect(clock.read(20_060)).toBe(260)
  })

  it('runs ahead of the applied time by at most two seconds, and drops the rest', () => {
    const clock = new LeaderClock(0, 0, 1000)
    for (let ms = 0; ms <= 10_000; ms += 1000) expect(clock.stamp(ms, 0)).toBe(Math.min(ms, 2000))
    expect(clock.stamp(10_001, 5000)).toBe(2001)
  })

  it('never goes back, also when its first stamp is far ahead of what is applied', () => {
    const clock = new LeaderClock(9000, 0, 100)
    expect(clock.stamp(50, 0)).toBe(9000)
    expect(clock.stamp(100, 9000)).toBe(9050)
  })
})

describe('history', () => {
  const event: Event = { kind: 'put', key: 'k', version: 1n }
  const cursor = (index: number, ordinal: number, epoch = 1): Cursor => ({ epoch, index: index as Index, ordinal })
  const history = (events: number, bytes = 1e9) => new EventHistory(1, 10 as Index, { events, bytes })

  it('gives the events after a cursor, also in the middle of an entry', () => {
    const h = history(100)
    h.add(11 as Index, [event, event])
    h.add(13 as Index, [event])
    const at = (c: Cursor) => h.since(c)?.map((e) => [e.cursor.index, e.cursor.ordinal])
    expect(at(cursor(11, 0))).toEqual([
      [11, 1],
      [11, 2],
      [13, 1],
    ])
    expect(at(cursor(11, 1))).toEqual([
      [11, 2],
      [13, 1],
    ])
    expect(at(cursor(11, 2))).toEqual([[13, 1]])
    expect(at(cursor(13, 1))).toEqual([])
    expect(at(cursor(99, 0))).toEqual([])
    expect(at(cursor(10, 5))).toBeUndefined()
    expect(at(cursor(11, 0, 2))).toBeUndefined()
  })

  it('says so when events are gone, and keeps its bounds', () => {
    const h = history(3)
    for (let i = 11; i < 5000; i++) h.add(i as Index, [event])
    expect(h.since(cursor(4996, 1))).toHaveLength(3)
    expect(h.since(cursor(4996, 0))).toBeUndefined()
    expect(h.since(cursor(100, 1))).toBeUndefined()
    const small = history(1000, 1000)
    for (let i = 11; i < 100; i++) small.add(i as Index, [event])
    expect(small.since(cursor(90, 1))).toBeUndefined()
    expect(small.since(cursor(97, 1))).toHaveLength(2)
  })
})

describe('members in a snapshot', () => {
  it('come back as they were', () => {
    const meta = {
      cluster: 'c0'.repeat(16),
      configuration: { voters: [1, 2 ** 51], votersOutgoing: [3], learners: [4], learnersNext: [5], autoLeave: true },
      members: [{ node: 2 ** 51, name: 'n1', peer: 'host:1', url: 'http://host:2' }],
    }
    expect(decodeMeta(encodeMeta(meta))).toEqual(meta)
  })
})

describe('options', () => {
  const { platform } = new World()
  it.each([
    [{ name: '' }, /member's name/],
    [{ name: 'a b' }, /member's name/],
    [{ name: 'n1', tickMs: 0 }, /tickMs is 0/],
    [{ name: 'n1', segmentBytes: 1000 }, /segmentBytes is 1000; at least 262144/],
    [{ name: 'n1', electionTicks: 1.5 }, /electionTicks/],
  ])('%o are refused', (options, message) => {
    expect(() => settingsOf({ platform, ...options })).toThrow(message)
  })

  it('that are undefined take their default', () => {
    expect(settingsOf({ platform, name: 'n1', tickMs: undefined as unknown as number }).tickMs).toBe(50)
  })
})

describe('flusher', () => {
  it('puts what comes up during a write into the next, where a later suffix replaces an earlier one', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { entries: entries(1, 2) })
    const done: number[] = []
    const flusher = new Flusher({
      log,
      clock: new SimClock(),
      blocking: false,
      done: (sequence) => done.push(sequence),
    })
    flusher.add({ mustSync: true, sequence: 1, entries: entries(3, 6) })
    flusher.start(false)
    flusher.add({
      mustSync: true,
      sequence: 2,
      hardState: { term: 2, vote: 1, commit: 0 },
      entries: entries(5, 8, 20, 2),
    })
    flusher.add({ mustSync: true, sequence: 3, entries: entries(7, 7, 20, 3) })
    flusher.start(false)
    expect(flusher.isIdle).toBe(false)
    disk.run()
    expect(done).toEqual([1])
    flusher.start(false)
    disk.run()
    expect(done).toEqual([1, 3])
    expect(flusher.isIdle).toBe(true)
    const again = openLog(disk)
    expect(indexes(again)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(again.recovered.map((entry) => entry.term)).toEqual([1, 1, 1, 1, 2, 2, 3])
    expect(again.hardState.term).toBe(2)
  })

  it('writes nothing for what may be lost, and takes it along with the next', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    const done: number[] = []
    const flusher = new Flusher({ log, clock: new SimClock(), blocking: true, done: (sequence) => done.push(sequence) })
    const hardState = { term: 1, vote: 1, commit: 0 }
    const before = disk.syncs
    flusher.add({ mustSync: false, sequence: 1, hardState, entries: [] })
    expect(flusher.start(false)).toBe(1)
    expect(disk.syncs).toBe(before)
    flusher.add({ mustSync: true, sequence: 2, hardState, entries: entries(1, 1) })
    flusher.start(false)
    flusher.add({ mustSync: false, sequence: 3, hardState, entries: [] })
    expect(flusher.start(false)).toBeUndefined()
    disk.run()
    expect(done).toEqual([2])
    expect(flusher.start(false)).toBe(3)
  })

  it('blocks while the disk is quick, and not while it is slow', () => {
    const clock = new SimClock()
    let takesMs = 0
    let blocked = 0
    const log = {
      appendSync() {
        blocked++
        clock.now += takesMs
        return true
      },
      append(_: unknown, done: () => void) {
        clock.now += takesMs
        done()
      },
    } as unknown as Log
    const flusher = new Flusher({ log, clock, blocking: true, done() {} })
    const writes = (count: number): number => {
      const before = blocked
      for (let i = 0; i < count; i++) {
        flusher.add({ mustSync: true, sequence: i, entries: entries(1, 1) })
        flusher.start(true)
      }
      return blocked - before
    }
    expect(writes(20)).toBe(20)
    takesMs = 3
    expect(writes(20)).toBeLessThan(10)
    expect(writes(20)).toBe(0)
    takesMs = 0
    writes(20)
    expect(writes(20)).toBe(20)
    // One that is slow for once does not matter for long.
    takesMs = 40
    writes(1)
    takesMs = 0
    writes(30)
    expect(writes(20)).toBe(20)
  })

  it('blocks only where nothing is held up by it', () => {
    const disk = new SimDisk()
    const flusher = new Flusher({ log: openLog(disk), clock: new SimClock(), blocking: true, done() {} })
    flusher.add({ mustSync: true, sequence: 1, entries: entries(1, 1) })
    expect(flusher.start(true)).toBeUndefined()
    disk.run()
    flusher.add({ mustSync: true, sequence: 2, entries: entries(2, 2) })
    expect(flusher.start(true)).toBe(2)
    flusher.add({ mustSync: true, sequence: 3, entries: entries(3, 3) })
    expect(flusher.start(false)).toBeUndefined()
  })
})
