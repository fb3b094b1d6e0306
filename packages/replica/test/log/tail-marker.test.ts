import { StorageError } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { isTailMarker } from '../../src/log/tail-marker.js'
import { append, entry, indexes, openLog, segments } from '../support/logs.js'
import { SimDisk } from '../support/sim-disk.js'

const marks = (disk: SimDisk) => disk.list().filter(isTailMarker)

/** A log of `count` entries, all of them acknowledged. */
function written(count: number): SimDisk {
  const disk = new SimDisk()
  const log = openLog(disk)
  for (let i = 1; i <= count; i++) append(disk, log, { entries: [entry(i, 700)] })
  log.close()
  return disk
}

function cut(disk: SimDisk, name: string, size: number): void {
  const bytes = disk.read(name, 0, size)
  disk.remove(name)
  disk.create(name, size, (_, file) => file?.write(0, [bytes], true, () => file.close()))
  disk.run()
}

describe('the newest log file', () => {
  for (const count of [3, 40]) {
    it(`is missed after its removal, with ${count} entries`, () => {
      const disk = written(count)
      disk.remove(segments(disk).at(-1) as string)
      expect(() => openLog(disk)).toThrow(/newest log file is missing/)
      expect(() => openLog(disk)).toThrow(StorageError)
    })

    it(`is refused when it was truncated anywhere, with ${count} entries`, () => {
      for (const size of [0, 512, 4096, 8191]) {
        const disk = written(count)
        cut(disk, segments(disk).at(-1) as string, size)
        expect(() => openLog(disk)).toThrow(`damaged at byte ${size}: it ends here, and had 8192 bytes`)
      }
    })
  }

  it('has one marker, which follows it through files, restarts and power loss', () => {
    const disk = written(40)
    expect(marks(disk).length).toBe(1)
    let last = 40
    for (let life = 0; life < 5; life++) {
      disk.crash(() => 0)
      const log = openLog(disk)
      expect(indexes(log).at(-1)).toBe(last)
      expect(marks(disk)).toEqual([expect.stringContaining((segments(disk).at(-1) as string).slice(4, 20))])
      for (let i = 0; i < 10; i++) append(disk, log, { entries: [entry(++last, 700)] })
    }
  })

  it('is ignored when it belongs to an earlier member of the folder', () => {
    const disk = written(40)
    for (const name of segments(disk)) disk.remove(name)
    const log = openLog(disk, { identity: 78 })
    append(disk, log, { entries: [entry(1)] })
    expect(marks(disk).length).toBe(1)
    expect(indexes(openLog(disk, { identity: 78 }))).toEqual([1])
  })
})
