import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RaftLog } from '../src/log.js'
import type { Entry } from '../src/types.js'

const entry = (term: number, index: number, size = 1): Entry => ({
  term,
  index,
  kind: 'normal',
  data: new Uint8Array(size),
})

/** A log on `base` whose entries have these terms. */
function logOf(terms: readonly number[], base = { index: 0, term: 0 }, commit = base.index): RaftLog {
  return new RaftLog(
    base,
    terms.map((term, i) => entry(term, base.index + 1 + i)),
    commit,
  )
}

const termsOf = (log: RaftLog) => Array.from({ length: log.length }, (_, i) => log.termAt(log.firstIndex + i))

describe('where two logs may still meet', () => {
  it.each([
    [[1, 1, 1], 3, 1, { index: 3, term: 1 }],
    [[1, 1, 3, 3], 4, 2, { index: 2, term: 1 }],
    [[2, 2, 3, 3], 4, 1, { index: 0, term: 0 }],
    [[1, 2, 5, 5, 5], 5, 4, { index: 2, term: 2 }],
    [[1, 2, 5, 5, 5], 4, 5, { index: 4, term: 5 }],
  ])('%j below %i with terms up to %i', (terms, index, term, expected) => {
    expect(logOf(terms).findConflictByTerm(index, term)).toEqual(expected)
  })

  it('stops at what is compacted away', () => {
    const log = logOf([4, 4], { index: 10, term: 3 }, 12)
    expect(log.findConflictByTerm(12, 2)).toEqual({ index: 9, term: 0 })
    expect(log.findConflictByTerm(12, 3)).toEqual({ index: 10, term: 3 })
  })

  it('is the highest possible place, by the definition', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4), { maxLength: 12 }), fc.nat(12), fc.nat(6), (raw, at, term) => {
        const terms = raw.map((one) => one + 1).sort((a, b) => a - b)
        const index = Math.min(at, terms.length)
        const found = logOf(terms).findConflictByTerm(index, term)
        let expected = 0
        for (let i = 1; i <= index; i++) if ((terms[i - 1] as number) <= term) expected = i
        expect(found).toEqual({ index: expected, term: expected === 0 ? 0 : terms[expected - 1] })
      }),
    )
  })
})

describe('an append', () => {
  it('follows figure 3.1 for all small logs', () => {
    const term = fc.integer({ min: 1, max: 3 })
    const ascending = fc.array(term, { maxLength: 6 }).map((terms) => terms.sort((a, b) => a - b))
    fc.assert(
      fc.property(ascending, ascending, fc.nat(6), fc.nat(8), (ours, theirs, from, commit) => {
        const previous = Math.min(from, theirs.length)
        const log = logOf(ours)
        const sent = theirs.slice(previous).map((one, i) => entry(one, previous + 1 + i))
        const matched = log.maybeAppend({ index: previous, term: theirs[previous - 1] ?? 0 }, sent, commit)
        // The twin: arrays of terms.
        const meets = previous === 0 || ours[previous - 1] === theirs[previous - 1]
        if (!meets) {
          expect(matched).toBeUndefined()
          expect(termsOf(log)).toEqual(ours)
          return
        }
        const clash = sent.findIndex((one) => ours[one.index - 1] !== one.term)
        const expected = clash < 0 ? ours : [...ours.slice(0, previous + clash), ...theirs.slice(previous + clash)]
        expect(termsOf(log)).toEqual(expected)
        expect(matched).toBe(theirs.length)
        expect(log.committed).toBe(Math.min(commit, theirs.length))
      }),
    )
  })

  it('never replaces what is committed', () => {
    const log = logOf([1, 1, 1], undefined, 2)
    expect(() => log.maybeAppend({ index: 1, term: 1 }, [entry(2, 2)], 0)).toThrow(/conflicts with a committed one/)
    expect(() => log.append([entry(2, 2)])).toThrow(/would replace a committed one/)
    expect(() => log.append([entry(2, 5)])).toThrow(/a hole/)
  })
})

describe('slices', () => {
  it('are bounded by bytes, but never empty while there is an entry', () => {
    const log = new RaftLog({ index: 0, term: 0 }, [entry(1, 1, 10), entry(1, 2, 10), entry(1, 3, 30)], 0)
    const indexes = (bytes: number, from = 1) => log.slice(from, bytes).map(({ index }) => index)
    expect(indexes(0)).toEqual([1])
    expect(indexes(19)).toEqual([1])
    expect(indexes(20)).toEqual([1, 2])
    expect(indexes(49)).toEqual([1, 2])
    expect(indexes(50)).toEqual([1, 2, 3])
    expect(indexes(5, 4)).toEqual([])
  })

  it('of compacted entries are a broken invariant', () => {
    const log = logOf([1, 1], { index: 5, term: 1 }, 7)
    expect(() => log.slice(5, 100)).toThrow(/compacted up to 5/)
  })
})

/** What a disk holds when writes complete in order, some time after they were handed out. */
class DiskTwin {
  private writes: { sequence: number; entries: readonly Entry[] }[] = []
  private sequence = 0
  stored: number[] = []

  hand(log: RaftLog): void {
    if (!log.hasUnwritten) return
    this.writes.push({ sequence: ++this.sequence, entries: log.unwritten() })
    log.beginWrite(this.sequence)
  }

  complete(log: RaftLog): void {
    const write = this.writes.shift()
    if (write === undefined) return
    const first = write.entries[0] as Entry
    this.stored = [...this.stored.slice(0, first.index - 1), ...write.entries.map(({ term }) => term)]
    log.written(write.sequence)
  }
}

describe('what is durable', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), at: fc.nat(5), count: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constantFrom('hand' as const, 'complete' as const) }),
  )

  it('is always on the disk, even if entries are overwritten during writes, and finally covers the whole log', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const log = logOf([])
        const disk = new DiskTwin()
        let term = 1
        const check = () => {
          const mine = termsOf(log).slice(0, log.durable)
          expect(disk.stored.slice(0, log.durable)).toEqual(mine)
        }
        for (const one of steps) {
          if (one.kind === 'append') {
            // Every suffix that replaces something is of a later term.
            term++
            const from = Math.max(1, log.lastIndex + 1 - one.at)
            log.append(Array.from({ length: one.count }, (_, i) => entry(term, from + i)))
          } else if (one.kind === 'hand') disk.hand(log)
          else disk.complete(log)
          check()
        }
        disk.hand(log)
        for (let i = 0; i < 50; i++) disk.complete(log)
        check()
        expect(log.durable).toBe(log.lastIndex)
      }),
    )
  })
})

describe('compaction and applying', () => {
  it('keeps the term of the last entry that it forgets', () => {
    const log = logOf([1, 2, 3], undefined, 3)
    log.applying = 3
    log.applyTo(2)
    expect(() => log.compact(3)).toThrow(/applied only 2/)
    log.compact(2)
    expect(log.firstIndex).toBe(3)
    expect(log.termAt(2)).toBe(2)
    expect(log.termAt(1)).toBeUndefined()
    expect(log.lastId).toEqual({ index: 3, term: 3 })
    log.compact(1)
    expect(log.firstIndex).toBe(3)
  })

  it('hands out only what is committed and durable', () => {
    const log = logOf([])
    log.append([entry(1, 1), entry(1, 2)])
    log.beginWrite(1)
    log.commitTo(2)
    expect(log.nextCommitted(false, 100)).toEqual([])
    expect(log.nextCommitted(true, 100).map(({ index }) => index)).toEqual([1, 2])
    log.written(1)
    expect(log.nextCommitted(false, 100).map(({ index }) => index)).toEqual([1, 2])
    expect(() => log.applyTo(1)).toThrow(/applied 1/)
  })
})

describe('a snapshot of the leader', () => {
  const snapshot = (index: number, term: number) => ({
    index,
    term,
    configuration: { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false },
  })

  it('takes the place of the log, and is applied once it is written', () => {
    const log = logOf([1, 1], undefined, 1)
    log.restore(snapshot(9, 3))
    expect(log).toMatchObject({ lastIndex: 9, committed: 9, applied: 0, lastId: { index: 9, term: 3 } })
    log.append([entry(3, 10)])
    log.commitTo(10)
    log.beginWrite(1)
    expect(log.nextCommitted(true, 100)).toEqual([])
    log.written(1)
    expect(log).toMatchObject({ applied: 9, durable: 10, pendingSnapshot: undefined })
    expect(log.nextCommitted(false, 100).map(({ index }) => index)).toEqual([10])
  })

  it('that is not ahead of the commit is a broken invariant', () => {
    expect(() => logOf([1, 1], undefined, 2).restore(snapshot(2, 1))).toThrow(/not ahead of commit 2/)
  })

  it('is not taken for written by the end of an earlier write', () => {
    const log = logOf([])
    log.append([entry(1, 1)])
    log.beginWrite(1)
    log.restore(snapshot(5, 2))
    log.written(1)
    expect(log.pendingSnapshot).toBeDefined()
    log.beginWrite(2)
    log.written(2)
    expect(log.pendingSnapshot).toBeUndefined()
  })
})
