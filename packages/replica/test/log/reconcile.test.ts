import { describe, expect, it } from 'vitest'
import { identitySeed } from '../../src/storage/identity.js'
import { checkHardState, reconcileSnapshot } from '../../src/log/reconcile.js'
import type { Recovered } from '../../src/log/recovery.js'
import { append, entries, indexes, openLog } from '../support/logs.js'
import { SimDisk } from '../support/sim-disk.js'

const recovered = (list: Recovered['entries'], base?: Recovered['base']): Recovered => ({
  ...{
    segments: [],
    leftovers: [],
    nextSequence: 1,
    tail: 0,
    zeroTo: undefined,
    fillFrom: undefined,
    lastFrames: new Map(),
  },
  ...{ hardState: undefined, entries: list, base },
})

describe('a log beside a snapshot', () => {
  it('continues after the snapshot when it has the same entry at that index', () => {
    const joined = reconcileSnapshot(recovered(entries(1, 9, 20, 2)), { index: 5, term: 2 })
    expect(joined.entries.map(({ index }) => index)).toEqual([6, 7, 8, 9])
    expect(joined.needBase).toBe(false)
  })

  it.each([1, 3])('is void when the entry at its index is of term %i, not 2: lower or higher', (term) => {
    const joined = reconcileSnapshot(recovered(entries(1, 9, 20, term)), { index: 5, term: 2 })
    expect(joined).toEqual({ entries: [], needBase: true })
  })

  it('is void when it ends before it', () => {
    expect(reconcileSnapshot(recovered(entries(1, 4)), { index: 5, term: 1 })).toEqual({ entries: [], needBase: true })
  })
})

describe('term and vote beside a snapshot', () => {
  const disk = new SimDisk()

  it('are those of the log when it is of the same term, or a later one', () => {
    const found = { term: 4, vote: 7, commit: 5 }
    for (const term of [3, 4]) expect(checkHardState(disk, found, { index: 5, term }, 9)).toEqual(found)
  })

  it("are the snapshot's, without a vote, when the log is of an earlier term", () => {
    const found = { term: 3, vote: 7, commit: 2 }
    expect(checkHardState(disk, found, { index: 5, term: 4 }, 5)).toEqual({ term: 4, vote: 0, commit: 5 })
  })

  it('have the higher of the two commit indexes', () => {
    const found = { term: 4, vote: 7, commit: 8 }
    expect(checkHardState(disk, found, { index: 5, term: 4 }, 9).commit).toBe(8)
    expect(checkHardState(disk, undefined, { index: 5, term: 4 }, 9)).toEqual({ term: 4, vote: 0, commit: 5 })
  })
})

describe('a log on the disk', () => {
  it('ends with a suffix that is shorter than the one whose place it took', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { hardState: { term: 1, vote: 1, commit: 2 }, entries: entries(1, 9) })
    append(disk, log, { hardState: { term: 2, vote: 2, commit: 2 }, entries: entries(4, 5, 20, 2) })
    const again = openLog(disk)
    expect(indexes(again)).toEqual([1, 2, 3, 4, 5])
    expect(again.recovered.map(({ term }) => term)).toEqual([1, 1, 1, 2, 2])
  })

  it('never says that entries are committed which a later frame would have brought', () => {
    const write = (disk: SimDisk): void => {
      const log = openLog(disk, { segmentBytes: 4096, spareSegments: 4 })
      append(disk, log, { hardState: { term: 1, vote: 1, commit: 0 }, entries: entries(1, 2) })
      log.append({ hardState: { term: 2, vote: 2, commit: 12 }, entries: entries(3, 12, 1000, 2) }, () => {})
    }
    const whole = new SimDisk()
    write(whole)
    let steps = 0
    while (whole.runOne()) steps++
    expect(openLog(whole, { segmentBytes: 4096 }).hardState).toEqual({ term: 2, vote: 2, commit: 12 })
    expect(steps).toBeGreaterThan(4)
    for (let stop = 0; stop <= steps; stop++) {
      const disk = new SimDisk()
      write(disk)
      for (let i = 0; i < stop; i++) disk.runOne()
      disk.crash(() => 0)
      const { hardState, recovered: found } = openLog(disk, { segmentBytes: 4096 })
      expect(hardState.commit, `after ${stop} steps`).toBeLessThanOrEqual(found.at(-1)?.index ?? 0)
      // Term and vote are there before the first entry of the term.
      if (found.some(({ term }) => term === 2)) expect(hardState).toMatchObject({ term: 2, vote: 2 })
    }
  })
})

describe('the seed of a log', () => {
  it('is that of its member alone: members of one cluster do not read the logs of each other', () => {
    const identity = { node: 7, name: 'n1', cluster: 'ab'.repeat(16), epoch: 1 }
    const seed = identitySeed(identity)
    expect(identitySeed({ ...identity, node: 8 })).not.toBe(seed)
    expect(identitySeed({ ...identity, name: 'other', epoch: 2 })).toBe(seed)
  })
})
