import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { InvalidError, StorageError } from '@leasehold/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { recoverFolder } from '../../../src/node/offline/recover.js'
import { folderIdentity } from '../../../src/node/offline/folder-identity.js'
import { verifyFolder } from '../../../src/node/offline/verify.js'
import { openNodeReplica } from '../../../src/node/open-replica.js'
import { dyingAfter } from '../../support/dying-disk.js'
import { Folders, SMALL, stop, usedFolder } from '../../support/folders.js'

const folders = new Folders()
afterAll(() => folders.close())

const MUSTER = '{"node":1}\n'
const OLD = /^(log|snapshot)-|^(identity|muster\.json)$/
let original: string
let oldFiles: string[]
let before: Awaited<ReturnType<typeof verifyFolder>>

beforeAll(async () => {
  original = folders.make()
  await usedFolder(original, { epoch: 2 })
  writeFileSync(join(original, 'muster.json'), MUSTER)
  before = await verifyFolder({ dir: original })
  oldFiles = readdirSync(original).filter((name) => OLD.test(name))
})

function copy(): string {
  const dir = join(folders.make(), 'data')
  // Not the sockets and records of owners.
  cpSync(original, dir, { recursive: true, filter: (name) => !/\/owner[.-]/.test(name) })
  return dir
}

function keptIn(dir: string): void {
  for (const name of oldFiles) {
    expect(readFileSync(join(dir, name)).equals(readFileSync(join(original, name)))).toBe(true)
  }
  expect(readdirSync(dir).sort()).toEqual([...oldFiles].sort())
}

describe('recover', () => {
  it('creates a single-member service in the new epoch from the whole log, and keeps the old files', async () => {
    const dir = copy()
    const report = await recoverFolder({ dir, epoch: 3 })
    expect(report).toMatchObject({
      member: 'n1',
      epoch: 3,
      oldEpoch: 2,
      lastIndex: before.index,
      lastTerm: before.term,
    })
    expect(report.holds.map((hold) => hold.names)).toEqual([['kept']])
    keptIn(report.keptIn)
    const after = await verifyFolder({ dir })
    expect(after.counts).toMatchObject({ sessions: 0, holds: 1, waiters: 0, registers: 1 })
    expect(after.identity.cluster).toBe(report.cluster)
    expect(after.identity.cluster).not.toBe(before.identity.cluster)
    expect(after.identity.node).not.toBe(before.identity.node)
    expect(after.index).toBeGreaterThan(before.index)
    const member = await openNodeReplica({ dir, ...SMALL, mustExist: true })
    expect(member.status).toMatchObject({ epoch: 3, role: 'leader' })
    await stop(member)
    await expect(recoverFolder({ dir, epoch: 3 })).rejects.toMatchObject({ hint: expect.stringContaining('--epoch 4') })
    await recoverFolder({ dir, epoch: 4 })
  })

  it('refuses a low epoch, a folder with an owner, a damaged or empty one, and changes nothing', async () => {
    const dir = copy()
    for (const epoch of [undefined, 1, 2])
      await expect(recoverFolder({ dir, epoch })).rejects.toBeInstanceOf(InvalidError)
    await expect(recoverFolder({ dir: folders.make(), epoch: 9 })).rejects.toBeInstanceOf(StorageError)
    await expect(recoverFolder({ dir: join(dir, 'nowhere'), epoch: 9 })).rejects.toThrow(/there is no folder/)
    expect((await verifyFolder({ dir })).state.hash()).toBe(before.state.hash())
    const member = await openNodeReplica({ dir, ...SMALL })
    await expect(recoverFolder({ dir, epoch: 9 })).rejects.toThrow(/is in use by n1/)
    await stop(member)
    const damaged = copy()
    const log = join(damaged, readdirSync(damaged).find((name) => name.startsWith('log-')) as string)
    const bytes = readFileSync(log)
    bytes[100] = (bytes[100] as number) ^ 1
    writeFileSync(log, bytes)
    await expect(recoverFolder({ dir: damaged, epoch: 9 })).rejects.toThrow(/log-\d+-\d+ is damaged at byte/)
    expect(folderIdentity(damaged)?.epoch).toBe(2)
  })

  it('leaves the old folder intact, or one that a repeated call completes, when it is killed at any disk change', async () => {
    let died = 0
    for (let allowed = 0; ; allowed++) {
      const dir = copy()
      if (await dyingAfter(allowed, () => recoverFolder({ dir, epoch: 3 }))) break
      died++
      let epoch: number | string | undefined
      try {
        epoch = folderIdentity(dir)?.epoch
      } catch (error) {
        epoch = (error as Error).message
      }
      if (epoch === 2) expect((await verifyFolder({ dir })).state.hash()).toBe(before.state.hash())
      else if (epoch !== 3) {
        expect([allowed, epoch]).toEqual([allowed, expect.stringMatching(/a recover of .* was interrupted/)])
        await expect(openNodeReplica({ dir, ...SMALL })).rejects.toThrow(/was interrupted/)
        await expect(recoverFolder({ dir, epoch: 4 })).rejects.toThrow(/was begun with --epoch 3/)
      }
      if (epoch !== 3) await recoverFolder({ dir, epoch: 3 })
      const after = await verifyFolder({ dir })
      expect(after.identity.epoch).toBe(3)
      expect(after.counts).toMatchObject({ holds: 1, registers: 1 })
      keptIn(join(dir, 'before-epoch-3'))
    }
    expect(died).toBeGreaterThan(20)
  })
})
