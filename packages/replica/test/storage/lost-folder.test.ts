import { describe, expect, it } from 'vitest'
import type { DiskFile, FolderState } from '../../src/platform.js'
import { SegmentPool } from '../../src/log/segment-pool.js'
import { SnapshotStore } from '../../src/snapshots/snapshot-store.js'
import { FolderLostError } from '../../src/storage/storage-errors.js'
import { append, entries, openLog, segments } from '../support/logs.js'
import { SimDisk } from '../support/sim-disk.js'

/** A disk with folder checks that records the checked files. */
class CheckedDisk extends SimDisk {
  state: FolderState = { kind: 'own' }
  readonly checked: (string | undefined)[] = []
  /** Answers that are held back while `hangs`. */
  readonly held: (() => void)[] = []
  hangs = false

  readonly check = (file: DiskFile | undefined, done: (state: FolderState) => void): void => {
    this.checked.push(file?.name)
    if (this.hangs) this.held.push(() => done(this.state))
    else done(this.state)
  }
}

const LOST: FolderState = { kind: 'lost', why: 'the folder is gone' }

describe('a folder that is lost', () => {
  it('is detected before a new log file gets its name there', () => {
    const disk = new CheckedDisk()
    const log = openLog(disk)
    append(disk, log, { entries: entries(1, 5, 1000) })
    const before = disk.list()
    disk.state = LOST
    expect(() => append(disk, log, { entries: entries(6, 12, 1000) })).toThrow(FolderLostError)
    expect(disk.list()).toEqual(before)
    expect(log.failure).toMatchObject({
      message: 'the folder is gone',
      hint: expect.stringContaining('Bring the folder'),
    })
  })

  it('is distinguished from one that cannot be checked: the log continues', () => {
    const disk = new CheckedDisk()
    const log = openLog(disk)
    for (const kind of ['unknown', 'failing'] as const) {
      disk.state = { kind, why: 'EMFILE' }
      append(disk, log, { entries: entries(kind === 'unknown' ? 1 : 13, kind === 'unknown' ? 12 : 24, 1000) })
    }
    expect(segments(disk).length).toBeGreaterThan(3)
    expect(
      disk.checked.filter((name) => name?.startsWith('spare-') || name?.startsWith('log-')).length,
    ).toBeGreaterThan(1)
  })

  it('gets no spare log file: what is at the path may belong to another member', () => {
    const disk = new CheckedDisk()
    disk.state = LOST
    const before = disk.list()
    const pool = new SegmentPool(disk, { segmentBytes: 4096, count: 2 }, () => {})
    pool.prepare()
    while (disk.runOne());
    expect(disk.list()).toEqual(before)
    expect(pool.failure).toBeInstanceOf(FolderLostError)
    expect(pool.isIdle).toBe(true)
  })

  it('does not hold up the end while its check before a spare log file hangs', () => {
    const disk = new CheckedDisk()
    disk.hangs = true
    const pool = new SegmentPool(disk, { segmentBytes: 4096, count: 2 }, () => {})
    let released = false
    pool.waitForSegment(() => {
      released = true
    })
    expect([pool.isIdle, released]).toEqual([true, false])
    pool.close()
    expect([pool.isIdle, released]).toEqual([true, true])
    for (const answer of disk.held) answer()
    expect(disk.list()).toEqual([])
  })

  it('blocks the write while its check hangs, and the log can still be closed', () => {
    const disk = new CheckedDisk()
    const log = openLog(disk)
    append(disk, log, { entries: entries(1, 5, 1000) })
    const before = segments(disk)
    disk.hangs = true
    let failure: Error | undefined
    log.append({ entries: entries(6, 12, 1000) }, (error) => {
      failure = error
    })
    disk.run()
    expect([failure, log.isIdle]).toEqual([undefined, false])
    log.close()
    for (const answer of disk.held.splice(0)) answer()
    disk.run()
    expect([failure?.message, log.isIdle]).toEqual([expect.stringContaining('was closed'), true])
    expect(segments(disk)).toEqual(before)
  })

  it('gets no snapshot, and none of its files is replaced or deleted, however late it is detected', () => {
    const snapshot = (index: number) => ({ index, term: 1, meta: new Uint8Array(3), state: new Uint8Array(500) })
    for (const when of ['before', 'after the file was written'] as const) {
      const disk = new CheckedDisk()
      const snapshots = new SnapshotStore(disk, { reserveBytes: 2000, changed() {} })
      snapshots.prepare()
      disk.run()
      for (const index of [1, 2]) {
        snapshots.save(snapshot(index), () => {})
        disk.run()
      }
      const before = disk.list()
      let failure: Error | undefined
      if (when === 'before') disk.state = LOST
      snapshots.save(snapshot(3), (error) => {
        failure = error
      })
      disk.state = LOST
      disk.run()
      expect(failure, when).toBeInstanceOf(FolderLostError)
      expect(disk.list(), when).toEqual(before)
      expect(snapshots.isIdle).toBe(true)
    }
  })
})

describe('a log that is closed while it waits for a new file', () => {
  it('becomes idle, at whatever point it is closed', () => {
    let failed = 0
    for (let steps = 0; steps < 15; steps++) {
      const disk = new SimDisk()
      const log = openLog(disk, { spareSegments: 1 })
      append(disk, log, { entries: entries(1, 5, 1000) })
      let ended = false
      log.append({ entries: entries(6, 40, 1000) }, (error) => {
        ended = true
        if (error) failed++
      })
      for (let i = 0; i < steps; i++) disk.runOne()
      if (disk.idle) break
      log.close()
      disk.run()
      expect([steps, ended, log.isIdle]).toEqual([steps, true, true])
    }
    expect(failed).toBeGreaterThan(0)
  })
})
