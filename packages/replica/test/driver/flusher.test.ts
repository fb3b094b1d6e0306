import { SimDisk } from '../support/sim-disk.js'
import { describe, expect, it } from 'vitest'
import { Flusher } from '../../src/driver/flusher.js'
import type { Log, LogRecord } from '../../src/log/log.js'
import { entries, append, indexes, openLog } from '../support/logs.js'
import { SimClock } from '../support/world.js'

/** A flusher over a log that records its writes and completes them on demand. */
function flusherOf() {
  const records: LogRecord[] = []
  const durable: number[] = []
  let end: (() => void) | undefined
  const log = {
    append(record: LogRecord, done: () => void) {
      records.push(record)
      end = done
    },
  } as unknown as Log
  const done = (sequence: number): void => void durable.push(sequence)
  const flusher = new Flusher({ log, clock: new SimClock(), blocking: false, done })
  return { flusher, records, durable, complete: () => end?.() }
}

const hard = (term: number, vote: number, commit = 0) => ({ term, vote, commit })

describe('two writes that become one', () => {
  it('have the term, vote and commit index of the second', () => {
    const { flusher, records } = flusherOf()
    flusher.add({ mustSync: true, sequence: 1, hardState: hard(3, 1, 4), entries: entries(5, 5) })
    flusher.add({ mustSync: true, sequence: 2, hardState: hard(4, 2, 5), entries: entries(6, 6) })
    flusher.start(false)
    expect(records).toMatchObject([{ hardState: hard(4, 2, 5), entries: entries(5, 6) }])
  })

  it('have the term and vote of the first when the second has none', () => {
    const { flusher, records } = flusherOf()
    flusher.add({ mustSync: true, sequence: 1, hardState: hard(3, 1), entries: [] })
    flusher.add({ mustSync: true, sequence: 2, entries: entries(6, 6) })
    flusher.start(false)
    expect(records).toMatchObject([{ hardState: hard(3, 1), entries: entries(6, 6) }])
  })

  it('begin with the snapshot that the first one installed', () => {
    const { flusher, records } = flusherOf()
    const base = { index: 9, term: 2 }
    flusher.add({ mustSync: true, sequence: 1, base, entries: [] })
    flusher.add({ mustSync: true, sequence: 2, entries: entries(10, 11) })
    flusher.start(false)
    expect(records).toMatchObject([{ base, entries: entries(10, 11) }])
  })

  it('keep nothing from before the snapshot that the second one installed', () => {
    const { flusher, records } = flusherOf()
    const base = { index: 9, term: 2 }
    flusher.add({ mustSync: true, sequence: 1, hardState: hard(2, 1), entries: entries(5, 7) })
    flusher.add({ mustSync: true, sequence: 2, base, entries: entries(10, 10) })
    flusher.start(false)
    expect(records).toMatchObject([{ base, entries: entries(10, 10), hardState: hard(2, 1) }])
  })
})

describe('a write that need not be synced', () => {
  it('is not reported while an earlier one is under way, which would be taken for durable with it', () => {
    const { flusher, durable, complete } = flusherOf()
    flusher.add({ mustSync: true, sequence: 1, entries: entries(1, 1) })
    expect(flusher.start(false)).toBeUndefined()
    flusher.add({ mustSync: false, sequence: 2, hardState: hard(1, 1, 1), entries: [] })
    expect(flusher.start(false)).toBeUndefined()
    complete()
    expect(durable).toEqual([1])
    expect(flusher.start(false)).toBe(2)
  })
})

describe('flusher', () => {
  it('merges changes during a write into the next one, where a later suffix replaces an earlier one', () => {
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

  it('does not write changes that may be lost, and includes them in the next write', () => {
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

  it('blocks while the disk is fast, and not while it is slow', () => {
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
    // A single slow write has no lasting effect.
    takesMs = 40
    writes(1)
    takesMs = 0
    writes(30)
    expect(writes(20)).toBe(20)
  })

  it('blocks only when that delays nothing', () => {
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
