import { crc32 } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { readIdentity, writeIdentity } from '../../src/storage/identity.js'
import { DiskFullError } from '../../src/platform.js'
import { type Snapshot, SnapshotStore } from '../../src/snapshots/snapshot-store.js'
import { DamagedError } from '../../src/storage/storage-errors.js'
import { SimDisk, seeded } from '../support/sim-disk.js'

function snapshot(index: number, size = 3000): Snapshot {
  return { index, term: 2, meta: new Uint8Array([1, 2, 3]), state: new Uint8Array(size).fill(index) }
}

function open(disk: SimDisk, reserveBytes = 8192): SnapshotStore {
  const snapshots = new SnapshotStore(disk, { reserveBytes, changed() {} })
  snapshots.prepare()
  disk.run()
  return snapshots
}

function save(disk: SimDisk, snapshots: SnapshotStore, value: Snapshot): void {
  let failure: Error | undefined
  snapshots.save(value, (error) => {
    failure = error
  })
  disk.run()
  if (failure) throw failure
}

const files = (disk: SimDisk) => disk.list().filter((name) => name.startsWith('snapshot-'))

describe('snapshots', () => {
  it('return the newest, and keep two', () => {
    const disk = new SimDisk()
    const snapshots = open(disk)
    for (const index of [5, 9, 12]) save(disk, snapshots, snapshot(index))
    expect(snapshots.compactableIndex).toBe(9)
    disk.crash(() => 0)
    expect(files(disk).length).toBeLessThanOrEqual(3)
    expect(open(disk).loaded).toEqual(snapshot(12))
  })

  it('go on after a restart: the older of the two goes first, and the log is cut to the one that stays', () => {
    const disk = new SimDisk()
    const before = open(disk)
    for (const index of [5, 9]) save(disk, before, snapshot(index))
    const snapshots = open(disk)
    expect(snapshots.compactableIndex).toBe(5)
    save(disk, snapshots, snapshot(12))
    expect(snapshots.compactableIndex).toBe(9)
    expect(files(disk).map((name) => Number(name.slice(9, 25)))).toEqual([9, 12])
  })

  it('larger than the reserve are written too, and the reserve grows', () => {
    const disk = new SimDisk()
    const snapshots = open(disk)
    save(disk, snapshots, snapshot(5, 20_000))
    expect(disk.size(disk.list().find((name) => name.startsWith('reserve-')) as string)).toBeGreaterThan(20_000)
    expect(open(disk).loaded).toEqual(snapshot(5, 20_000))
  })

  it('fall back to the previous one when any byte of the newest has changed', () => {
    const disk = new SimDisk()
    const snapshots = open(disk)
    save(disk, snapshots, snapshot(5, 100))
    save(disk, snapshots, snapshot(9, 100))
    const name = files(disk)[1] as string
    const whole = disk.bytes(name).slice()
    for (let at = 0; at < 36 + 3 + 100 + 4; at++) {
      const bytes = whole.slice()
      bytes[at] = (bytes[at] as number) ^ 0x10
      const copy = disk.clone()
      copy.overwrite(name, bytes)
      const again = open(copy)
      expect(again.loaded?.index, `byte ${at}`).toBe(5)
      expect(again.skipped?.message).toContain(name)
    }
  })

  it('keep two whole ones: a damaged one does not count, and the log is not compacted to it', () => {
    const disk = new SimDisk()
    const snapshots = open(disk)
    save(disk, snapshots, snapshot(5, 100))
    save(disk, snapshots, snapshot(9, 100))
    const rots = (name: string): void => {
      const bytes = disk.bytes(name).slice()
      bytes[50] = (bytes[50] as number) ^ 1
      disk.overwrite(name, bytes)
    }
    rots(files(disk)[1] as string)
    save(disk, open(disk), snapshot(12, 100))
    const again = open(disk)
    expect(again.loaded?.index).toBe(12)
    expect(again.compactableIndex).toBe(5)
    // Now damage the newest: the one at 5 can still replace it.
    rots(files(disk).at(-1) as string)
    expect(open(disk).loaded?.index).toBe(5)
    save(disk, open(disk), snapshot(15, 100))
    save(disk, open(disk), snapshot(18, 100))
    open(disk)
    expect(files(disk)).toHaveLength(2)
  })

  it('refuse to start from nothing when the only one is damaged', () => {
    const disk = new SimDisk()
    save(disk, open(disk), snapshot(5))
    const [name] = files(disk) as [string]
    disk.overwrite(name, disk.bytes(name).subarray(0, 500))
    expect(() => open(disk)).toThrow(/snapshot-.* is damaged/)
  })

  it('refuse to start when the newest has a later format: it is not damaged, and the older one must not replace it', () => {
    const disk = new SimDisk()
    const snapshots = open(disk)
    save(disk, snapshots, snapshot(5, 100))
    save(disk, snapshots, snapshot(9, 100))
    const name = files(disk)[1] as string
    const bytes = disk.bytes(name).slice()
    const view = new DataView(bytes.buffer)
    view.setUint32(4, 2, true)
    view.setUint32(32, crc32(bytes.subarray(0, 32)), true)
    disk.overwrite(name, bytes)
    let failure: unknown
    try {
      open(disk)
    } catch (error) {
      failure = error
    }
    expect(failure).toMatchObject({ message: `sim/${name} has format 2; this program reads format 1` })
    expect(failure).not.toBeInstanceOf(DamagedError)
  })

  it('leave the old one in place when the power fails at any step', () => {
    for (let seed = 0; seed < 200; seed++) {
      const choose = seeded(seed)
      const disk = new SimDisk()
      const snapshots = open(disk)
      save(disk, snapshots, snapshot(5))
      snapshots.save(snapshot(9, choose(2) ? 3000 : 20_000), () => {})
      for (let n = choose(4); n > 0; n--) disk.runOne()
      disk.crash(choose)
      const again = open(disk)
      expect([5, 9]).toContain(again.loaded?.index)
      expect(disk.list().filter((name) => name.endsWith('.tmp'))).toEqual([])
    }
  })

  it('use the reserve on a full disk; without one they wait, and nothing is lost', () => {
    const disk = new SimDisk()
    const snapshots = open(disk)
    disk.room = 0
    save(disk, snapshots, snapshot(5))
    expect(snapshots.isFull).toBe(true)
    expect(() => save(disk, snapshots, snapshot(6))).toThrow(DiskFullError)
    expect(snapshots.failure).toBeUndefined()
    disk.room = 100_000
    save(disk, snapshots, snapshot(7))
    expect(snapshots.isFull).toBe(false)
    expect(open(disk).loaded?.index).toBe(7)
  })

  it('stop the member when a sync fails', () => {
    const disk = new SimDisk()
    const snapshots = open(disk)
    disk.failSync = 1
    expect(() => save(disk, snapshots, snapshot(5))).toThrow(/writing sim\/reserve-1 failed/)
    expect(snapshots.failure).toBeDefined()
  })
})

describe('identity', () => {
  const identity = { node: 123456789, name: 'n1', cluster: 'ab'.repeat(16), epoch: 3 }

  it('is read unchanged, and absent on an empty disk', () => {
    const disk = new SimDisk()
    expect(readIdentity(disk)).toBeUndefined()
    writeIdentity(disk, identity, (error) => expect(error).toBeUndefined())
    disk.run()
    disk.crash(() => 0)
    expect(readIdentity(disk)).toEqual(identity)
  })

  it('is refused when any byte has changed', () => {
    const disk = new SimDisk()
    writeIdentity(disk, identity, () => {})
    disk.run()
    const whole = disk.bytes('identity').slice()
    for (let at = 0; at < whole.length - 1; at++) {
      const bytes = whole.slice()
      bytes[at] = (bytes[at] as number) ^ 1
      disk.overwrite('identity', bytes)
      expect(() => readIdentity(disk), `byte ${at}`).toThrow(/sim\/identity is damaged/)
    }
  })
})
