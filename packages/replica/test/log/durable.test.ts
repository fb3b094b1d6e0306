import type { HardState } from '@leasehold/raft'
import { describe, expect, it } from 'vitest'
import type { Log } from '../../src/log/log.js'
import { append, entries, entry, indexes, openLog, segments } from '../support/logs.js'
import { SimDisk, seeded } from '../support/sim-disk.js'

const lost = (): number => 0
const kept = (): number => 1

/** Begins an append that is killed before its sync; returns once the process is dead. */
function killedBeforeSync(disk: SimDisk, log: Log, index: number, size = 20, hardState?: HardState): void {
  disk.dieAt = 2
  log.append({ entries: [entry(index, size)], hardState }, () => expect.fail('a killed process hears nothing'))
  disk.run()
  disk.kill()
}

describe('what a log reads at its start', () => {
  it('is durable once the log is open: a frame that was written and not synced by a killed process', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { entries: entries(1, 3) })
    killedBeforeSync(disk, log, 4)
    expect(indexes(openLog(disk))).toEqual([1, 2, 3, 4])
    disk.crash(lost)
    expect(indexes(openLog(disk))).toEqual([1, 2, 3, 4])
  })

  it('includes term and vote', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { hardState: { term: 3, vote: 0, commit: 0 }, entries: entries(1, 3) })
    killedBeforeSync(disk, log, 4, 20, { term: 4, vote: 7, commit: 1 })
    expect(openLog(disk).hardState).toEqual({ term: 4, vote: 7, commit: 1 })
    disk.crash(lost)
    expect(openLog(disk).hardState).toEqual({ term: 4, vote: 7, commit: 1 })
  })

  it.each([1, 40, 900, 3000])(
    'is written again, not only synced: a failed sync left %i bytes that look clean',
    (size) => {
      const disk = new SimDisk()
      disk.failedSyncKeepsPages = true
      const log = openLog(disk)
      append(disk, log, { entries: entries(1, 3) })
      disk.failSync = 1
      expect(() => append(disk, log, { entries: [entry(4, size)] })).toThrow(/sync failed/)
      disk.kill()
      expect(indexes(openLog(disk))).toEqual([1, 2, 3, 4])
      disk.crash(lost)
      expect(indexes(openLog(disk))).toEqual([1, 2, 3, 4])
    },
  )

  it('is durable in the file before the newest, where an earlier version may have left it unsynced', () => {
    const disk = new SimDisk()
    disk.failedSyncKeepsPages = true
    const log = openLog(disk)
    append(disk, log, { entries: [entry(1, 100)] })
    const before = disk.clone()
    append(disk, log, { entries: [entry(2, 4000)] })
    const old = disk.clone()
    append(disk, log, { entries: [entry(3, 5000)] })
    const [first = '', second = ''] = segments(disk)
    expect(second).not.toBe('')
    // As if frame 2 had never reached the disk, although it reads well.
    disk.overwrite(first, before.bytes(first))
    disk.pretend(first, old.bytes(first))
    expect(indexes(openLog(disk))).toEqual([1, 2, 3])
    disk.crash(lost)
    expect(indexes(openLog(disk))).toEqual([1, 2, 3])
  })

  it('refuses to start when the disk fails during the sync, and starts with the remaining data afterwards', () => {
    const disk = new SimDisk()
    disk.failedSyncKeepsPages = true
    const log = openLog(disk)
    append(disk, log, { entries: entries(1, 3) })
    killedBeforeSync(disk, log, 4)
    disk.failSync = 1
    expect(() => openLog(disk)).toThrow(/writing sim\/log-.* failed: EIO/)
    expect(indexes(openLog(disk))).toEqual([1, 2, 3, 4])
    disk.crash(lost)
    expect(indexes(openLog(disk))).toEqual([1, 2, 3, 4])
  })

  // The next frame ends in every place of a sector, also where the next sector begins.
  it.each([0, 1, 2, 3, 4, 5, 6, 7])(
    'is never followed by the rest of a torn write: next frame of size %i',
    (eighth) => {
      for (const fail of [false, true]) {
        for (let step = 1; step <= 6; step++) {
          const disk = new SimDisk()
          disk.failedSyncKeepsPages = true
          const log = openLog(disk)
          append(disk, log, { entries: entries(1, 3) })
          // Of a write of ten sectors the first three are missing.
          killedBeforeSync(disk, log, 4, 5000)
          let sector = 0
          disk.crash((limit) => (limit > 2 || sector++ < 4 ? 0 : 1))
          if (fail) disk.failSync = step
          else disk.dieAt = step
          try {
            openLog(disk)
          } catch {
            // Killed, or stopped by a disk error.
          }
          disk.kill()
          disk.failSync = 0
          const again = openLog(disk)
          expect(indexes(again)).toEqual([1, 2, 3])
          append(disk, again, { entries: [entry(4, 1600 + 64 * eighth)] })
          disk.crash(lost)
          expect(indexes(openLog(disk)), `step ${step}, ${fail ? 'failed' : 'killed'}`).toEqual([1, 2, 3, 4])
        }
      }
    },
  )

  it('survives any sequence of appends, kills, kills while opening, failed syncs and power failures', () => {
    for (let seed = 1; seed <= 400; seed++) new History(seed).run()
  })
})

/** Appends of one member, whose process and power end at any change of the disk. */
class History {
  private readonly disk = new SimDisk()
  private readonly choose: (limit: number) => number
  /** What was acknowledged, or was there when the log was open: entries as index and term. */
  private known: string[] = []
  private term = 1

  constructor(private readonly seed: number) {
    this.choose = seeded(seed)
    this.disk.failedSyncKeepsPages = this.choose(2) === 1
  }

  run(): void {
    for (let life = 0; life < 12; life++) {
      const log = this.open()
      if (log) this.write(log)
      const powerCut = this.choose(2) === 0
      const all = this.choose(3)
      if (powerCut) this.disk.crash(all === 0 ? lost : all === 1 ? kept : this.choose)
      else this.disk.kill()
      this.disk.failSync = 0
    }
    this.disk.crash(lost)
    this.open()
  }

  /** Undefined: the process was killed, or the disk has failed, before the log was open. */
  private open(): Log | undefined {
    const { disk, choose } = this
    const trouble = choose(4)
    if (trouble === 0) disk.dieAt = 1 + choose(8)
    if (trouble === 1) disk.failSync = 1 + choose(4)
    let log: Log
    try {
      log = openLog(disk, { segmentBytes: 4096 })
    } catch (error) {
      if (!/killed|sync failed|never came/.test(String(error))) throw new Error(`seed ${this.seed}`, { cause: error })
      return undefined
    }
    disk.dieAt = 0
    const found = log.recovered.map(({ index, term }) => `${index}/${term}`)
    expect(found.slice(0, this.known.length), `seed ${this.seed}`).toEqual(this.known)
    this.known = found
    return log
  }

  private write(log: Log): void {
    const { disk, choose } = this
    const count = choose(6)
    for (let n = 0; n <= count; n++) {
      if (n === count) disk.dieAt = 1 + choose(3)
      if (n === count && choose(3) === 0) disk.failSync = 1
      const index = this.known.length + 1
      const { term } = this
      try {
        append(disk, log, { hardState: { term, vote: 1, commit: 0 }, entries: [entry(index, 1 + choose(1500), term)] })
      } catch (error) {
        if (!/killed|failed|never came/.test(String(error))) throw error
        this.term++
        return
      }
      this.known.push(`${index}/${term}`)
    }
  }
}
