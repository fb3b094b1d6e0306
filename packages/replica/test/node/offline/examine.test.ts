import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Index, LockState, StorageError } from '@leasehold/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NodeDisk } from '../../../src/node/node-disk.js'
import { examineFolder } from '../../../src/node/offline/examine.js'
import { verifyFolder } from '../../../src/node/offline/verify.js'
import { openNodeReplica } from '../../../src/node/open-replica.js'
import { readSnapshot, type Snapshot, snapshotNames, SnapshotStore } from '../../../src/snapshots/snapshot-store.js'
import { Folders, SMALL, stop, usedFolder } from '../../support/folders.js'

const folders = new Folders()
afterAll(() => folders.close())

let original: string
beforeAll(async () => {
  original = folders.make()
  await usedFolder(original, { snapshots: true })
})

function copy(): string {
  const dir = join(folders.make(), 'data')
  cpSync(original, dir, { recursive: true, filter: (name) => !/\/owner[.-]/.test(name) })
  return dir
}

const names = (dir: string, kind: string): string[] =>
  readdirSync(dir)
    .filter((name) => name.startsWith(kind))
    .sort()

function flip(file: string, at: number): void {
  const bytes = readFileSync(file)
  bytes[at] = (bytes[at] as number) ^ 4
  writeFileSync(file, bytes)
}

describe('verify', () => {
  it("replays to the member's state, and changes no file", async () => {
    const dir = copy()
    const files = () =>
      readdirSync(dir)
        .filter((name) => !name.startsWith('owner'))
        .map((name) => [name, readFileSync(join(dir, name)).toString('base64')])
    const untouched = files()
    const content = await verifyFolder({ dir })
    expect(files()).toEqual(untouched)
    expect(content.snapshots).toHaveLength(2)
    expect(content.log.files).toBeGreaterThan(1)
    expect(content.counts).toMatchObject({ sessions: 2, holds: 202, waiters: 1, registers: 1 })
    const member = await openNodeReplica({ dir, ...SMALL })
    // Its start is an entry of its own.
    expect(member.stale().index).toBeGreaterThan(content.index)
    // So is the floor of its clock, which the replay of the log before has not seen.
    expect(member.stale().state.counter).toBeGreaterThan(content.state.counter)
    await expect(verifyFolder({ dir })).rejects.toThrow(/is in use by n1/)
    await stop(member)
  })

  it('finds a changed byte in identity, snapshots and log, and names file and byte', () => {
    const cases = [
      ['identity', 10],
      [names(original, 'snapshot-')[0] as string, 500],
      [names(original, 'snapshot-')[1] as string, 20],
      [names(original, 'log-')[0] as string, 40],
      [names(original, 'log-').at(-1) as string, 3],
    ] as const
    for (const [name, at] of cases) {
      const dir = copy()
      flip(join(dir, name), at)
      let problem: unknown
      try {
        examineFolder(new NodeDisk(dir))
      } catch (error) {
        problem = error
      }
      expect([name, problem]).toEqual([name, expect.any(StorageError)])
      expect((problem as Error).message).toMatch(new RegExp(`/${name} is damaged at byte \\d+`))
    }
  })

  it('finds a whole snapshot that differs from the replayed log', async () => {
    const dir = copy()
    const disk = new NodeDisk(dir)
    const [older, newer] = snapshotNames(disk).map((name) => readSnapshot(disk, name)) as [Snapshot, Snapshot]
    const wrong = LockState.restore(older.state)
    wrong.apply({ at: wrong.now, commands: [] }, newer.index as Index)
    const elsewhere = folders.make()
    const snapshots = new SnapshotStore(new NodeDisk(elsewhere), { reserveBytes: 0, changed() {} })
    await new Promise((done) => snapshots.save({ ...newer, state: wrong.snapshot() }, done, { reserve: false }))
    cpSync(join(elsewhere, snapshotNames(disk)[1] as string), join(dir, snapshotNames(disk)[1] as string))
    expect(() => examineFolder(disk)).toThrow(
      /snapshot-\d+-\d+ is damaged at byte 0: its state is not what the log makes of snapshot-/,
    )
  })

  it('finds files of two mixed folders', async () => {
    const other = folders.make()
    await usedFolder(other)
    const mixed = copy()
    cpSync(join(other, 'identity'), join(mixed, 'identity'))
    expect(() => examineFolder(new NodeDisk(mixed))).toThrow(/is of cluster/)
    await expect(openNodeReplica({ dir: mixed, ...SMALL })).rejects.toThrow(/is of cluster/)
  })

  it('reports an empty or missing folder', async () => {
    await expect(verifyFolder({ dir: folders.make() })).rejects.toThrow(/is empty/)
    await expect(verifyFolder({ dir: join(folders.make(), 'x') })).rejects.toThrow(/there is no folder/)
  })
})
