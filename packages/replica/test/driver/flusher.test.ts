import { describe, expect, it } from 'vitest'
import { Flusher } from '../../src/driver/flusher.js'
import type { Log, LogRecord } from '../../src/log/log.js'
import { entries } from '../support/logs.js'
import { SimClock } from '../support/world.js'

/** A flusher over a log that notes its records, and completes a write when it is told to. */
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
