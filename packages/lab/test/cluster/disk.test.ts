import { describe, expect, it } from 'vitest'
import { type DiskHost, SimulatedDisk } from '../../src/cluster/disk/disk.js'
import { QUIET_DISK } from '../../src/cluster/disk/disk-faults.js'
import { Inode, SECTOR } from '../../src/cluster/disk/inode.js'
import type { DiskFile } from '@leasehold/replica'
import { DiskFullError } from '@leasehold/replica'

/** A host without time: what is planned runs when `run` is called. */
class Host implements DiskHost {
  alive = true
  private planned: (() => void)[] = []
  readonly effects: string[] = []

  after(_delayMs: number, action: () => void): void {
    this.planned.push(action)
  }

  effect(what: string): boolean {
    this.effects.push(what)
    return this.alive
  }

  run(): void {
    while (this.planned.length > 0) (this.planned.shift() as () => void)()
  }
}

/** Draws from a list, over and over. */
const drawing = (...draws: number[]) => {
  let n = 0
  return { below: (limit: number) => (draws[n++ % draws.length] as number) % limit }
}

const LOST = 0
const KEPT = 999

function made(disk: SimulatedDisk, host: Host, name: string, size: number): DiskFile {
  disk.faults = { ...QUIET_DISK, syncSpreadMs: 0 }
  let file: DiskFile | undefined
  disk.mount(host).create(name, size, (error, one) => {
    if (error) throw error
    file = one
  })
  host.run()
  return file as DiskFile
}

const bytes = (length: number, value: number) => new Uint8Array(length).fill(value)

describe('the simulated disk', () => {
  it('keeps in a crash what was synced, file and folder', () => {
    const disk = new SimulatedDisk('d', drawing(LOST))
    const host = new Host()
    const mounted = disk.mount(host)
    const file = made(disk, host, 'a', 4 * SECTOR)
    mounted.syncFolder()
    file.writeSync(0, [bytes(SECTOR, 1)])
    disk.crash()
    expect(disk.mount(new Host()).read('a')[0]).toBe(1)
  })

  it('loses unsynced writes by the sector, any subset of them', () => {
    // The size has not changed, so the draws are those of the sectors: the second one is lost.
    const disk = new SimulatedDisk('d', drawing(KEPT, LOST, KEPT))
    const host = new Host()
    const file = made(disk, host, 'a', 4 * SECTOR)
    disk.folder.sync()
    file.write(0, [bytes(3 * SECTOR, 7)], true, () => {})
    disk.crash()
    const left = disk.mount(new Host()).read('a')
    expect([left[0], left[SECTOR], left[2 * SECTOR]]).toEqual([7, 0, 7])
    expect(disk.counts.torn).toBe(1)
  })

  it('forgets a file, a rename or a removal whose folder was not synced', () => {
    const disk = new SimulatedDisk('d', drawing(KEPT))
    const host = new Host()
    const mounted = disk.mount(host)
    made(disk, host, 'a', SECTOR)
    mounted.syncFolder()
    made(disk, host, 'b', SECTOR)
    mounted.rename('a', 'c')
    expect(mounted.list()).toEqual(['b', 'c'])
    disk.crash()
    expect(disk.mount(new Host()).list()).toEqual(['a'])
  })

  it('reports a failed sync once and drops what it could not write', () => {
    const disk = new SimulatedDisk('d', drawing(LOST))
    const host = new Host()
    const file = made(disk, host, 'a', SECTOR)
    disk.trouble.failSync = true
    let failed: Error | undefined
    file.write(0, [bytes(10, 9)], true, (error) => {
      failed = error
    })
    host.run()
    expect(failed?.message).toMatch(/EIO/)
    expect(disk.mount(host).read('a')[0]).toBe(0)
  })

  it('refuses a file for which there is no room, and leaves none behind', () => {
    const disk = new SimulatedDisk('d', drawing(LOST))
    const host = new Host()
    disk.capacity = 1000
    let failed: Error | undefined
    disk.mount(host).create('a', 1001, (error) => {
      failed = error
    })
    host.run()
    expect(failed).toBeInstanceOf(DiskFullError)
    expect(disk.mount(host).list()).toEqual([])
  })

  it('is full at any byte: what fits is there until the failure is noticed, or when the process dies before', () => {
    const disk = new SimulatedDisk('d', drawing(KEPT))
    const host = new Host()
    const file = made(disk, host, 'a', 100)
    disk.capacity = 700
    const failures: (Error | undefined)[] = []
    disk.mount(host).create('b.tmp', 1001, (error) => failures.push(error))
    expect(disk.mount(host).size('b.tmp')).toBe(600)
    host.alive = false
    host.run()
    expect(failures).toEqual([])
    expect(disk.mount(host).size('b.tmp')).toBe(600)
    host.alive = true
    disk.mount(host).remove('b.tmp')
    file.write(90, [bytes(400, 1), bytes(300, 2)], true, (error) => failures.push(error))
    host.run()
    expect(failures[0]).toBeInstanceOf(DiskFullError)
    const left = disk.mount(host).read('a')
    expect([left.length, left[489], left[490], left[699]]).toEqual([700, 1, 2, 2])
  })

  it('does nothing any more for a process that has died', () => {
    const disk = new SimulatedDisk('d', drawing(LOST))
    const host = new Host()
    const file = made(disk, host, 'a', SECTOR)
    host.alive = false
    file.write(0, [bytes(10, 5)], true, () => expect.fail('a dead process hears nothing'))
    host.run()
    expect(disk.mount(new Host()).read('a')[0]).toBe(0)
  })

  it('rots in place, and misdirects one read', () => {
    const disk = new SimulatedDisk('d', drawing(8, SECTOR, 0, 2))
    const host = new Host()
    const file = made(disk, host, 'log-1', 8 * SECTOR)
    file.writeSync(0, [bytes(8 * SECTOR, 1)])
    expect(disk.rot(/^snapshot/)).toBeUndefined()
    expect(disk.altered).toBe(false)
    expect(disk.rot(/^log/)).toBe('log-1')
    expect(
      disk
        .mount(host)
        .read('log-1')
        .every((byte) => byte === 1),
    ).toBe(false)
    expect(disk.altered).toBe(true)
  })

  it('grows a file that is written beyond its end', () => {
    const inode = new Inode(10)
    inode.write(8, bytes(SECTOR, 3))
    expect(inode.size).toBe(8 + SECTOR)
    inode.settle(() => true)
    expect(inode.size).toBe(10)
    expect(inode.read(0, 10).every((byte) => byte === 0)).toBe(true)
  })

  it('keeps what a killed process wrote readable, and as unsynced as before: bytes and names', () => {
    const disk = new SimulatedDisk('d', drawing(LOST))
    const host = new Host()
    const mounted = disk.mount(host)
    const file = made(disk, host, 'a', 2 * SECTOR)
    mounted.syncFolder()
    file.write(0, [bytes(SECTOR, 1)], false, () => {})
    mounted.rename('a', 'b')
    disk.processDied()
    disk.faults = { ...disk.faults, kept: 0, loss: 1000 }
    const next = disk.mount(new Host())
    expect([next.list(), next.read('b')[0]]).toEqual([['b'], 1])
    disk.crash()
    expect([next.list(), next.read('a')[0]]).toEqual([['a'], 0])
  })

  it('keeps it in a crash once another process has synced it', () => {
    const disk = new SimulatedDisk('d', drawing(LOST))
    const host = new Host()
    const mounted = disk.mount(host)
    const file = made(disk, host, 'a', 2 * SECTOR)
    mounted.syncFolder()
    file.write(0, [bytes(SECTOR, 1)], false, () => {})
    mounted.rename('a', 'b')
    disk.processDied()
    disk.faults = { ...disk.faults, kept: 0, loss: 1000 }
    const next = disk.mount(new Host())
    next.syncFolder()
    next.open('b').writeSync(0, [])
    disk.crash()
    expect([next.list(), next.read('b')[0]]).toEqual([['b'], 1])
  })

  it('may let what a failed sync has lost be read until the power goes: only a new write helps', () => {
    for (const rewritten of [false, true]) {
      // The first draw of a failed sync says that pages can still be read, the next ones that they are lost.
      const disk = new SimulatedDisk('d', drawing(1, LOST, LOST))
      const host = new Host()
      const mounted = disk.mount(host)
      const file = made(disk, host, 'a', 2 * SECTOR)
      mounted.syncFolder()
      disk.trouble.failSync = true
      expect(() => file.writeSync(0, [bytes(2 * SECTOR, 1)])).toThrow('EIO')
      expect(mounted.read('a').every((byte) => byte === 1)).toBe(true)
      file.writeSync(0, rewritten ? [bytes(2 * SECTOR, 1)] : [])
      disk.crash()
      expect(disk.mount(new Host()).read('a')[0]).toBe(rewritten ? 1 : 0)
    }
  })
})
