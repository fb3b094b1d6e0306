import { describe, expect, it } from 'vitest'
import { AcknowledgedMemory } from '../../src/rollback/acknowledged-memory.js'
import { ACKNOWLEDGED_FILE, AcknowledgedFile } from '../../src/rollback/acknowledged-file.js'
import { noopLogger } from '../../src/noop.js'
import { SimDisk } from '../support/sim-disk.js'

const IDENTITY = { node: 7, name: 'n1', cluster: 'c0'.repeat(16), epoch: 1 }

function opened(disk: SimDisk, identity = IDENTITY) {
  const memory = new AcknowledgedMemory()
  const failures: Error[] = []
  const guard = (action: () => void): void => {
    try {
      action()
    } catch (error) {
      failures.push(error as Error)
    }
  }
  const file = new AcknowledgedFile({ disk, identity, memory, log: noopLogger, guard })
  const save = (): void => {
    file.save()
    disk.run()
  }
  return { memory, file, save, failures }
}

describe('the memory of acknowledged entries', () => {
  it('keeps the latest entry per member, where a later term outranks a higher index', () => {
    const memory = new AcknowledgedMemory()
    memory.note(1, { index: 10, term: 2 })
    memory.note(1, { index: 9, term: 2 })
    expect(memory.get(1)).toEqual({ index: 10, term: 2 })
    memory.note(1, { index: 8, term: 3 })
    expect(memory.get(1)).toEqual({ index: 8, term: 3 })
    memory.note(2, { index: 0, term: 0 })
    expect(memory.get(2)).toBeUndefined()
  })

  it('is bounded, and drops removed members', () => {
    const memory = new AcknowledgedMemory()
    for (let node = 1; node <= 150; node++) memory.note(node, { index: node, term: 1 })
    expect([memory.get(100), memory.get(101)]).toEqual([{ index: 100, term: 1 }, undefined])
    memory.retain(new Set([5]))
    expect([memory.get(5), memory.get(6)]).toEqual([{ index: 5, term: 1 }, undefined])
  })
})

describe('the file of acknowledged entries', () => {
  it('exists only when entries are recorded, and is read at the next start', () => {
    const disk = new SimDisk()
    const { memory, save, failures } = opened(disk)
    save()
    expect(disk.list()).toEqual([])
    for (let i = 1; i <= 5; i++) {
      memory.note(8, { index: i, term: 1 })
      save()
    }
    const { syncs } = disk
    save()
    expect(disk.syncs).toBe(syncs)
    expect(opened(disk).memory.get(8)).toEqual({ index: 5, term: 1 })
    expect(failures).toEqual([])
  })

  it('falls back to the previous copy when the newest is torn', () => {
    const disk = new SimDisk()
    const { memory, save } = opened(disk)
    for (let i = 1; i <= 2; i++) {
      memory.note(8, { index: i, term: 1 })
      save()
    }
    const whole = disk.bytes(ACKNOWLEDGED_FILE).slice()
    for (const at of [12, 4096 + 12]) {
      const bytes = whole.slice()
      bytes[at] = 255 - (bytes[at] as number)
      disk.overwrite(ACKNOWLEDGED_FILE, bytes)
      expect([1, 2]).toContain(opened(disk).memory.get(8)?.index)
    }
    disk.overwrite(ACKNOWLEDGED_FILE, new Uint8Array(whole.length).fill(255))
    expect(opened(disk).memory.get(8)).toBeUndefined()
  })

  it.each([
    { ...IDENTITY, node: 9 },
    { ...IDENTITY, cluster: 'c1'.repeat(16) },
    { ...IDENTITY, epoch: 2 },
  ])('means nothing to another member, cluster or epoch: %o', (identity) => {
    const disk = new SimDisk()
    const { memory, save } = opened(disk)
    memory.note(8, { index: 3, term: 1 })
    save()
    expect(opened(disk, identity).memory.get(8)).toBeUndefined()
  })

  it('is recreated when its size differs, and a full disk does not stop the member', () => {
    const disk = new SimDisk()
    disk.create(ACKNOWLEDGED_FILE, 10, () => {})
    disk.run()
    const { memory, save, failures } = opened(disk)
    memory.note(8, { index: 3, term: 1 })
    disk.room = 100
    save()
    expect([disk.list(), failures]).toEqual([[], []])
    disk.room = 100_000
    save()
    expect(opened(disk).memory.get(8)).toEqual({ index: 3, term: 1 })
  })

  it('stops the member when it cannot be written', () => {
    const disk = new SimDisk()
    const { memory, save, failures } = opened(disk)
    memory.note(8, { index: 3, term: 1 })
    disk.failWrite = 1
    save()
    expect(failures).toMatchObject([{ message: 'writing sim/acknowledged failed: EIO: write failed' }])
  })
})
