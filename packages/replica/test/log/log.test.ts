import { crc32, StorageError } from '@leasehold/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frameExtent } from '../../src/log/frame.js'
import { parseSegmentName, type Segment, segmentSeed } from '../../src/log/segment.js'
import { DamagedError } from '../../src/storage/storage-errors.js'
import { append, entries, entry, indexes, openLog, segments } from '../support/logs.js'
import { SimDisk, seeded } from '../support/sim-disk.js'

const HARD = { term: 3, vote: 2, commit: 1 }

/** Makes the second frame one of format 2, with its checksums. Returns where it is. */
function laterFormat(bytes: Uint8Array, seed: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const at = frameExtent(view.getUint32(8, true))
  view.setUint32(at + 4, 2, true)
  const body = bytes.subarray(at + 32, at + 32 + view.getUint32(at + 8, true))
  view.setUint32(at + 20, crc32(body, crc32(bytes.subarray(at, at + 20), seed)), true)
  view.setUint32(at + 28, crc32(bytes.subarray(at, at + 28), seed), true)
  return at
}

describe('log', () => {
  it('returns appended entries after a restart, over several files', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { hardState: HARD, entries: entries(1, 3) })
    for (let i = 4; i <= 60; i++) append(disk, log, { entries: [entry(i, 700)] })
    disk.crash(() => 0)
    const again = openLog(disk)
    expect(indexes(again)).toEqual(entries(1, 60).map((e) => e.index))
    expect(again.recovered[59]).toEqual(entry(60, 700))
    expect(again.hardState).toEqual(HARD)
    expect(segments(disk).length).toBeGreaterThan(3)
  })

  it('refuses a frame of a later format without reporting damage', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { hardState: HARD, entries: entries(1, 3) })
    append(disk, log, { entries: entries(4, 5) })
    const [name = ''] = segments(disk)
    const bytes = disk.read(name)
    const at = laterFormat(bytes, segmentSeed(77, parseSegmentName(name) as Segment))
    disk.overwrite(name, bytes)
    let failure: unknown
    try {
      openLog(disk)
    } catch (error) {
      failure = error
    }
    expect(failure).toMatchObject({
      message: expect.stringContaining(`from byte ${at} on, has format 2; this program reads format 1`),
      hint: 'start the version that wrote it, or a later one',
    })
    expect(failure).not.toBeInstanceOf(DamagedError)
  })

  it('replaces a suffix, also across files', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    for (let i = 1; i <= 20; i++) append(disk, log, { entries: [entry(i, 900)] })
    append(disk, log, { hardState: { term: 2, vote: 0, commit: 3 }, entries: entries(5, 6, 30, 2) })
    const again = openLog(disk)
    expect(indexes(again)).toEqual([1, 2, 3, 4, 5, 6])
    expect(again.recovered.map((e) => e.term)).toEqual([1, 1, 1, 1, 2, 2])
  })

  it('keeps configuration entries unchanged', () => {
    const disk = new SimDisk()
    const change = {
      transition: 'auto' as const,
      steps: [{ kind: 'addLearner' as const, node: 2 ** 51 + 7 }],
      context: new Uint8Array([1, 2, 3]),
    }
    const log = openLog(disk)
    append(disk, log, { entries: [{ term: 1, index: 1, kind: 'configuration', change }] })
    expect(openLog(disk).recovered).toEqual([{ term: 1, index: 1, kind: 'configuration', change }])
  })

  it('splits a record that is larger than a file into frames', () => {
    const disk = new SimDisk()
    append(disk, openLog(disk), { hardState: { term: 1, vote: 1, commit: 40 }, entries: entries(1, 40, 1000) })
    const again = openLog(disk)
    expect(indexes(again).length).toBe(40)
    expect(again.hardState.commit).toBe(40)
  })

  it('deletes files that a snapshot covers, and reads from there', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    for (let i = 1; i <= 40; i++) append(disk, log, { entries: [entry(i, 700)] })
    const before = segments(disk).length
    log.compact(30)
    disk.run()
    expect(segments(disk).length).toBeLessThan(before)
    expect(indexes(openLog(disk, { snapshot: { index: 30, term: 1 } }))).toEqual(entries(31, 40).map((e) => e.index))
  })

  it('keeps term and vote when the file that holds them is deleted', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { hardState: HARD, entries: [entry(1)] })
    for (let i = 2; i <= 40; i++) append(disk, log, { entries: [entry(i, 700)] })
    log.compact(40)
    disk.run()
    expect(segments(disk).length).toBe(1)
    expect(openLog(disk, { snapshot: { index: 40, term: 1 } }).hardState).toMatchObject({ term: 3, vote: 2 })
  })

  it('refuses a log that does not reach back to the snapshot', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    for (let i = 1; i <= 40; i++) append(disk, log, { entries: [entry(i, 700)] })
    log.compact(30)
    disk.run()
    expect(() => openLog(disk, { snapshot: { index: 5, term: 1 } })).toThrow(
      /log begins at entry \d+, but .* ends at entry 5/,
    )
  })

  it('finishes a deletion that a crash interrupted in any order', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    for (let i = 1; i <= 60; i++) append(disk, log, { entries: [entry(i, 700)] })
    const names = segments(disk)
    const broken = disk.clone()
    broken.remove(names[1] as string)
    const again = openLog(broken, { snapshot: { index: 50, term: 1 } })
    expect(indexes(again)[0]).toBe(51)
    expect(segments(broken)).not.toContain(names[0])
    const lost = disk.clone()
    lost.remove(names[1] as string)
    expect(() => openLog(lost)).toThrow(StorageError)
  })

  it('restarts after an installed snapshot', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { entries: entries(1, 5) })
    append(disk, log, { base: { index: 100, term: 7 }, entries: [] })
    append(disk, log, { entries: entries(101, 102, 20, 7) })
    expect(indexes(openLog(disk, { snapshot: { index: 100, term: 7 } }))).toEqual([101, 102])
  })

  it('accepts an installed snapshot whose base frame was lost, and writes that frame later', () => {
    const disk = new SimDisk()
    append(disk, openLog(disk), { entries: entries(1, 5) })
    const log = openLog(disk, { snapshot: { index: 100, term: 7 } })
    expect(indexes(log)).toEqual([])
    append(disk, log, { entries: entries(101, 101, 20, 7) })
    expect(indexes(openLog(disk, { snapshot: { index: 100, term: 7 } }))).toEqual([101])
  })

  it('refuses a log that ends before a committed entry', () => {
    const disk = new SimDisk()
    append(disk, openLog(disk), { hardState: { term: 1, vote: 0, commit: 9 }, entries: entries(1, 5) })
    expect(() => openLog(disk)).toThrow(/ends at entry 5, but entry 9 was committed/)
  })

  it('rejects the log of another member', () => {
    const disk = new SimDisk()
    append(disk, openLog(disk), { entries: entries(1, 5) })
    expect(() => openLog(disk, { identity: 78 })).toThrow(/log-.* is damaged at byte 0/)
  })
})

describe('torn tail', () => {
  /** Two acknowledged frames, and a third whose write is cut. */
  function prepared(size: number): { disk: SimDisk; name: string; from: number; to: number } {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { hardState: HARD, entries: entries(1, 2) })
    append(disk, log, { entries: [entry(3, 300)] })
    const name = segments(disk)[0] as string
    const before = disk.bytes(name).slice()
    append(disk, log, { entries: [entry(4, size)] })
    const after = disk.bytes(name)
    let from = 0
    while (before[from] === after[from]) from++
    let to = after.length
    while (after[to - 1] === 0) to--
    return { disk, name, from, to }
  }

  it.each([5, 150, 1500])('of %i bytes, cut at every byte, is recovered, appended to, and recovered again', (size) => {
    const { disk, name, from, to } = prepared(size)
    const whole = disk.bytes(name).slice()
    for (let cut = from; cut <= to; cut++) {
      const copy = disk.clone()
      const bytes = whole.slice()
      bytes.fill(0, cut, to)
      copy.overwrite(name, bytes)
      const log = openLog(copy)
      const kept = indexes(log).length
      expect(kept === 3 || kept === 4, `cut at ${cut}: ${kept}`).toBe(true)
      if (cut === to) expect(kept).toBe(4)
      if (cut === from) expect(kept).toBe(3)
      append(copy, log, { entries: [entry(kept + 1, 40)] })
      append(copy, log, { entries: [entry(kept + 2, 700)] })
      copy.crash(() => 0)
      expect(indexes(openLog(copy)).length, `cut at ${cut}`).toBe(kept + 2)
    }
  })

  it('is dropped when any sectors are missing, and nothing of it returns', () => {
    const { disk, name, from, to } = prepared(3000)
    const whole = disk.bytes(name).slice()
    const first = Math.floor(from / 512)
    const count = Math.ceil(to / 512) - first
    for (let lost = 1; lost < 1 << count; lost++) {
      const copy = disk.clone()
      const bytes = whole.slice()
      for (let s = 0; s < count; s++) {
        if (lost & (1 << s)) bytes.fill(0, Math.max(from, (first + s) * 512), Math.min(to, (first + s + 1) * 512))
      }
      copy.overwrite(name, bytes)
      const log = openLog(copy)
      expect(indexes(log)).toEqual([1, 2, 3])
      append(copy, log, { entries: [entry(4, 10)] })
      expect(openLog(copy).recovered[3]).toEqual(entry(4, 10))
    }
  })

  it('is distinguished from damage also when the data itself is all zero', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { entries: [{ term: 1, index: 1, kind: 'normal', data: new Uint8Array(3000) }] })
    expect(openLog(disk.clone()).recovered[0]).toMatchObject({ data: new Uint8Array(3000) })
    const name = segments(disk)[0] as string
    const bytes = disk.bytes(name).slice()
    bytes[1234] = (bytes[1234] as number) ^ 4
    disk.overwrite(name, bytes)
    expect(() => openLog(disk)).toThrow(StorageError)
  })
})

describe('damage', () => {
  it('to any byte of a middle frame or of the last acknowledged one is refused with file and offset', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { hardState: HARD, entries: entries(1, 2) })
    append(disk, log, { entries: [entry(3, 200)] })
    append(disk, log, { entries: [entry(4, 200)] })
    const name = segments(disk)[0] as string
    const whole = disk.bytes(name).slice()
    let end = whole.length
    while (whole[end - 1] === 0) end--
    let fillerFrom = end
    while (whole[fillerFrom - 1] === 0xa5) fillerFrom--
    for (let at = 0; at < end; at++) {
      const bytes = whole.slice()
      bytes[at] = (bytes[at] as number) ^ (1 << (at % 8))
      const copy = disk.clone()
      copy.overwrite(name, bytes)
      // The filler after the last frame holds nothing: it is written again.
      if (at >= fillerFrom) expect(indexes(openLog(copy))).toEqual([1, 2, 3, 4])
      else expect(() => openLog(copy), `byte ${at}`).toThrow(new RegExp(`sim/${name} is damaged at byte \\d+`))
    }
  })

  it('in an older file is refused, also when it looks torn', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    for (let i = 1; i <= 20; i++) append(disk, log, { entries: [entry(i, 1500)] })
    const [, second] = segments(disk)
    const bytes = disk.bytes(second as string).slice()
    let end = bytes.length
    while (bytes[end - 1] === 0) end--
    bytes.fill(0, end - 600, end)
    disk.overwrite(second as string, bytes)
    expect(() => openLog(disk)).toThrow(new RegExp(`${second} is damaged`))
  })

  it('to a frame before a whole one is refused, also when it looks torn', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { entries: [entry(1, 1500)] })
    append(disk, log, { entries: [entry(2, 1500)] })
    const name = segments(disk)[0] as string
    const bytes = disk.bytes(name).slice()
    bytes.fill(0, 512, 1024)
    disk.overwrite(name, bytes)
    expect(() => openLog(disk)).toThrow(/is damaged at byte 0: .* whole frame follows/)
  })
})

describe('failing disk', () => {
  it('stops permanently at a failed sync, even if the next one would succeed', () => {
    const disk = new SimDisk()
    const log = openLog(disk)
    append(disk, log, { entries: [entry(1)] })
    disk.failSync = 1
    expect(() => append(disk, log, { entries: [entry(2)] })).toThrow(StorageError)
    expect(() => append(disk, log, { entries: [entry(2)] })).toThrow(/sync failed/)
    expect(() => log.appendSync({ entries: [entry(2)] })).toThrow(/sync failed/)
    disk.crash(() => 1)
    expect(indexes(openLog(disk))).toEqual([1])
  })

  it('stops at a failed write, blocking or not', () => {
    for (const blocking of [false, true]) {
      const disk = new SimDisk()
      const log = openLog(disk)
      append(disk, log, { entries: [entry(1)] })
      disk.failWrite = 1
      const write = () =>
        blocking ? log.appendSync({ entries: [entry(2)] }) : append(disk, log, { entries: [entry(2)] })
      expect(write).toThrow(/log-.* failed: EIO/)
      expect(write).toThrow(/EIO/)
    }
  })

  it('with room for k bytes opens or reports why not, uses the reserve, then stops, and loses nothing', () => {
    for (let room = 0; room <= 5 * 8192; room += 512) {
      const disk = new SimDisk()
      disk.room = room
      if (room < 8192) {
        expect(() => openLog(disk)).toThrow(/no space left/)
        continue
      }
      const log = openLog(disk)
      let acknowledged = 0
      const files = Math.floor(room / 8192)
      expect(() => {
        for (let i = 1; i <= 100; i++) {
          append(disk, log, { entries: [entry(i, 900)] })
          acknowledged = i
        }
      }).toThrow(/no space left/)
      expect(log.isFull).toBe(true)
      expect(segments(disk).length).toBe(files)
      disk.crash(() => 0)
      expect(indexes(openLog(disk)).length).toBe(acknowledged)
    }
  })

  it('is full, and recovers when there is room again', () => {
    const disk = new SimDisk()
    disk.room = 2 * 8192
    const log = openLog(disk)
    append(disk, log, { entries: [entry(1)] })
    expect(log.isFull).toBe(true)
    disk.room = 10 * 8192
    log.prepare()
    disk.run()
    expect(log.isFull).toBe(false)
    for (let i = 2; i < 60; i++) append(disk, log, { entries: [entry(i, 900)] })
  })
})

describe('any sequence of appends and crashes', () => {
  it('never loses an acknowledged frame', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const choose = seeded(seed)
        const disk = new SimDisk()
        let log = openLog(disk)
        let acknowledged: { index: number; term: number }[] = []
        let snapshot = { index: 0, term: 0 }
        let term = 1
        for (let round = 0; round < 30; round++) {
          const known = acknowledged.length
          const from = snapshot.index + 1 + choose(known + 1)
          if (choose(3) === 0 || from <= snapshot.index + known) term++
          const batch = entries(from, from + choose(4), choose(4) === 0 ? 2500 : 1 + choose(300), term)
          const kept = acknowledged.slice(0, from - snapshot.index - 1)
          const after = [...kept, ...batch.map((e) => ({ index: e.index, term: e.term }))]
          if (choose(5) > 0) {
            append(disk, log, { hardState: { term, vote: 1, commit: snapshot.index }, entries: batch })
            acknowledged = after
            if (choose(6) === 0) {
              const cut = choose(acknowledged.length)
              const at = acknowledged[cut] as { index: number; term: number }
              snapshot = { index: at.index, term: at.term }
              acknowledged = acknowledged.slice(cut + 1)
              log.compact(snapshot.index)
              if (choose(2) === 0) disk.run()
            }
          } else {
            log.append({ hardState: { term, vote: 1, commit: snapshot.index }, entries: batch }, () => {})
            for (let n = choose(3); n > 0; n--) disk.runOne()
            disk.crash(choose)
            log = openLog(disk, { snapshot })
            const got = log.recovered.map((e) => ({ index: e.index, term: e.term }))
            // A write that was under way may be there as a whole, in part (if it took several frames), or not at all.
            const options = [
              acknowledged,
              ...batch.map((_, i) => [...kept, ...after.slice(kept.length, kept.length + i + 1)]),
            ]
            expect(options).toContainEqual(got)
            acknowledged = got
          }
        }
      }),
      { numRuns: 300 },
    )
  })
})
