import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Log } from '../../src/log/log.js'
import { NodeClock } from '../../src/node/node-clock.js'
import { NodeDisk } from '../../src/node/node-disk.js'
import { NodeRandom } from '../../src/node/node-random.js'
import { DiskFullError, type DiskFile } from '../../src/platform.js'
import { entries, entry } from '../support/logs.js'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'leasehold-disk-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const create = (disk: NodeDisk, name: string, size: number) =>
  new Promise<DiskFile>((resolve, reject) =>
    disk.create(name, size, (error, file) => (file ? resolve(file) : reject(error))),
  )
const openLog = (disk: NodeDisk, segmentBytes = 64 * 1024) =>
  new Promise<Log>((resolve, reject) => {
    const options = { identity: 7, segmentBytes, spareSegments: 2, snapshot: { index: 0, term: 0 }, changed() {} }
    Log.open(disk, options, (error, log) => (log ? resolve(log) : reject(error)))
  })
const append = (log: Log, record: Parameters<Log['append']>[0]) =>
  new Promise<void>((resolve, reject) => log.append(record, (error) => (error ? reject(error) : resolve())))

describe('data folder on this machine', () => {
  it('allocates what it creates', async () => {
    const disk = new NodeDisk(join(dir, 'a', 'b'))
    const file = await create(disk, 'x', 3 * 1024 * 1024 + 5)
    file.close()
    const { size, blocks } = statSync(join(dir, 'a', 'b', 'x'))
    expect(size).toBe(3 * 1024 * 1024 + 5)
    expect(blocks * 512).toBeGreaterThanOrEqual(size)
    expect(disk.list()).toEqual(['x'])
  })

  it('writes in place, blocking or not', async () => {
    const disk = new NodeDisk(dir)
    const file = await create(disk, 'x', 100)
    await new Promise<void>((resolve, reject) => {
      file.write(10, [new Uint8Array([1, 2]), new Uint8Array([3])], true, (error) =>
        error ? reject(error) : resolve(),
      )
    })
    file.writeSync(20, [new Uint8Array([4]), new Uint8Array([5])])
    file.close()
    expect([...disk.read('x', 9, 14)]).toEqual([0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4, 5, 0])
    expect(disk.size('x')).toBe(100)
  })

  it('reports a name that exists, and a path that is not a folder', async () => {
    const disk = new NodeDisk(dir)
    writeFileSync(join(dir, 'x'), 'here')
    await expect(create(disk, 'x', 10)).rejects.toThrow(/EEXIST/)
    expect(readFileSync(join(dir, 'x'), 'utf8')).toBe('here')
    expect(() => new NodeDisk(join(dir, 'x'))).toThrow()
    expect(() => disk.read('../y')).toThrow(/plain file name/)
  })

  it('keeps a log over restarts, whole files and torn tails included', async () => {
    const disk = new NodeDisk(dir)
    const log = await openLog(disk)
    for (let i = 1; i <= 50; i++) {
      if (i % 2 === 0 || !log.appendSync({ entries: [entry(i, 3000)] }))
        await append(log, { entries: [entry(i, 3000)] })
    }
    log.close()
    const again = await openLog(disk)
    expect(again.recovered.map((e) => e.index)).toEqual(entries(1, 50).map((e) => e.index))
    again.close()
    const name = disk
      .list()
      .filter((file) => file.startsWith('log-'))
      .at(-1) as string
    const bytes = readFileSync(join(dir, name))
    let end = bytes.length
    while (bytes[end - 1] === 0) end--
    bytes.fill(0, end - 1000, end)
    writeFileSync(join(dir, name), bytes)
    const torn = await openLog(disk)
    expect(torn.recovered.length).toBe(49)
    await append(torn, { entries: [entry(50, 10)] })
    torn.close()
    const last = await openLog(disk)
    expect(last.recovered.length).toBe(50)
    last.close()
  })

  it('names file and offset of damage', async () => {
    const disk = new NodeDisk(dir)
    const log = await openLog(disk)
    for (let i = 1; i <= 5; i++) await append(log, { entries: [entry(i, 100)] })
    log.close()
    const name = disk.list().find((file) => file.startsWith('log-')) as string
    const bytes = readFileSync(join(dir, name))
    bytes[300] = (bytes[300] as number) ^ 1
    writeFileSync(join(dir, name), bytes)
    await expect(openLog(disk)).rejects.toThrow(`${join(dir, name)} is damaged at byte `)
  })

  // A device that is always full; nothing has to be mounted for it.
  it.skipIf(!existsSync('/dev/full'))('reports a full disk as such (needs /dev/full)', async () => {
    const disk = new NodeDisk('/dev')
    const file = disk.open('full')
    await expect(
      new Promise<void>((resolve, reject) =>
        file.write(0, [new Uint8Array(10)], true, (error) => (error ? reject(error) : resolve())),
      ),
    ).rejects.toThrow(/ENOSPC/)
    file.close()
    expect(new DiskFullError('x').name).toBe('DiskFullError')
  })
})

describe('clock and random numbers of this machine', () => {
  it('run forward, and timers can be cancelled', async () => {
    const clock = new NodeClock(true)
    const before = clock.monotonicMs()
    let fired = 0
    const cancel = clock.after(1, () => (fired += 100))
    cancel()
    await new Promise<void>((resolve) => clock.after(20, resolve))
    expect(clock.monotonicMs() - before).toBeGreaterThanOrEqual(19)
    expect(Number.isInteger(clock.monotonicMs())).toBe(true)
    expect(fired).toBe(0)
  })

  it('stay below the limit', () => {
    const random = new NodeRandom()
    for (let i = 0; i < 100; i++) expect(random.below(3)).toBeLessThan(3)
    expect(random.below(2 ** 32)).toBeGreaterThanOrEqual(0)
    expect(random.bytes(16).length).toBe(16)
  })
})
