import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { floorAt, InvalidError, splitToken, StorageError } from '@leasehold/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NodeDisk } from '../../../src/node/node-disk.js'
import { exportAtOnce } from '../../../src/snapshots/state-export.js'
import { backupHeader, backupPieces } from '../../../src/node/offline/backup-file.js'
import { examineFolder } from '../../../src/node/offline/examine.js'
import { restoreBackup } from '../../../src/node/offline/restore.js'
import { folderIdentity } from '../../../src/node/offline/folder-identity.js'
import { verifyFolder } from '../../../src/node/offline/verify.js'
import { openNodeReplica } from '../../../src/node/open-replica.js'
import { dyingAfter } from '../../support/dying-disk.js'
import { Folders, SMALL, stop, usedFolder } from '../../support/folders.js'

const folders = new Folders()
afterAll(() => folders.close())

let original: string
beforeAll(async () => {
  const dir = folders.make()
  await usedFolder(dir, { epoch: 3 })
  const { state, identity, term } = examineFolder(new NodeDisk(dir))
  const copy = exportAtOnce(state)
  const facts = {
    cluster: identity.cluster,
    term,
    member: 'n1',
    read: 'linearizable',
    takenAt: 'now',
    members: [],
  } as const
  original = join(folders.make(), 'backup')
  writeFileSync(original, Buffer.concat([...backupPieces(backupHeader(copy, facts), copy)]))
})

/** A copy of the backup of its own, without notes. */
function backup(): string {
  const file = join(folders.make(), 'backup')
  cpSync(original, file)
  return file
}

const target = (): string => join(folders.make(), 'data')

describe('restore', () => {
  it('creates a service in the new epoch: sessions, holds and waiters end, persistent holds and registers stay', async () => {
    const dir = target()
    const floor = floorAt(Date.now()) as number
    const report = await restoreBackup({ file: backup(), dir, epoch: 4 })
    expect(report).toMatchObject({ epoch: 4, member: 'n1', backup: { epoch: 3 } })
    expect(report.holds).toMatchObject([{ names: ['kept'], client: 'client aa' }])
    const [moved] = report.holds
    expect(splitToken(moved?.from ?? 0n).epoch).toBe(3)
    expect(moved?.to).toBeGreaterThan((4n << 48n) + BigInt(floor))
    const { counts, identity, state } = await verifyFolder({ dir })
    expect(counts).toMatchObject({ sessions: 0, holds: 1, waiters: 0, delays: 0, registers: 1 })
    expect(identity).toMatchObject({ epoch: 4, cluster: report.cluster, name: 'n1' })
    expect(identity.cluster).not.toBe(report.backup.cluster)
    expect(state.epoch).toBe(4)
    const member = await openNodeReplica({ dir, ...SMALL, mustExist: true })
    expect(member.status).toMatchObject({ epoch: 4, role: 'leader', cluster: report.cluster })
    await stop(member)
  })

  it('refuses an epoch that is not above all known ones, names them, and suggests the next', async () => {
    const file = backup()
    const wrong = (epoch: number | undefined) =>
      restoreBackup({ file, dir: target(), epoch }).catch((error: unknown) => error)
    for (const epoch of [undefined, 0, 1, 3, 32_768, 4.5]) {
      const error = await wrong(epoch)
      expect([epoch, error]).toEqual([epoch, expect.any(InvalidError)])
      expect(error).toMatchObject({ hint: expect.stringContaining('--epoch 4') })
    }
    await restoreBackup({ file, dir: target(), epoch: 9 })
    expect(await wrong(9)).toMatchObject({
      hint: expect.stringContaining('--epoch 10'),
      message: expect.stringMatching(/3 \(the backup\), 9 \(restored/),
    })
    expect(await wrong(5)).toBeInstanceOf(InvalidError)
    await restoreBackup({ file, dir: target(), epoch: 10 })
  })

  it('refuses a folder that is in use, and counts its epoch as used', async () => {
    const file = backup()
    const dir = target()
    await restoreBackup({ file, dir, epoch: 20 })
    const again = restoreBackup({ file: backup(), dir, epoch: 4 })
    await expect(again).rejects.toMatchObject({ message: expect.stringContaining(`20 (the folder ${dir})`) })
    await expect(restoreBackup({ file: backup(), dir, epoch: 21 })).rejects.toThrow(/is not empty/)
    const foreign = target()
    mkdirSync(foreign)
    writeFileSync(join(foreign, 'holiday.jpg'), 'x')
    await expect(restoreBackup({ file: backup(), dir: foreign, epoch: 4 })).rejects.toThrow(
      /is not empty: it has holiday.jpg/,
    )
    expect(readdirSync(foreign)).toEqual(['holiday.jpg'])
  })

  it('refuses an unreadable note and an invalid name', async () => {
    const file = backup()
    writeFileSync(`${file}.epochs`, '{"epoch":7,"at":"x","data":"y","cluster":"z"}\n{"epo')
    const dir = target()
    await expect(restoreBackup({ file, dir, epoch: 8 })).rejects.toMatchObject({
      message: expect.stringContaining('.epochs is damaged at byte 46'),
    })
    await expect(restoreBackup({ file: backup(), dir, epoch: 8, name: 'no name' })).rejects.toBeInstanceOf(InvalidError)
    expect(existsSync(dir)).toBe(false)
  })

  it('never gives two concurrent restores of one backup the same epoch', async () => {
    const file = backup()
    const both = await Promise.allSettled([1, 2].map(() => restoreBackup({ file, dir: target(), epoch: 4 })))
    expect(both.map((one) => one.status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  it('leaves a folder on which nothing starts when it is killed at any disk change, and a later restore starts over', async () => {
    let ended = false
    let died = 0
    for (let allowed = 0; !ended; allowed++) {
      const file = backup()
      const dir = target()
      ended = await dyingAfter(allowed, () => restoreBackup({ file, dir, epoch: 4 }))
      if (ended) break
      died++
      const noted = existsSync(`${file}.epochs`) && readFileSync(`${file}.epochs`, 'utf8').includes('"epoch":4')
      const rest = existsSync(dir) ? readdirSync(dir).filter((name) => !/^owner[.-]/.test(name)) : []
      const standing = standingOf(dir)
      if (standing === 'founded') expect((await verifyFolder({ dir })).identity.epoch).toBe(4)
      // A folder that looks empty is empty: a service that is bootstrapped there has the first epoch.
      else if (standing === 'empty') expect([allowed, rest]).toEqual([allowed, []])
      else {
        expect(standing).toMatch(/was interrupted/)
        const report = await restoreBackup({ file, dir, epoch: noted ? 5 : 4 })
        expect((await verifyFolder({ dir })).identity).toMatchObject({ epoch: noted ? 5 : 4, cluster: report.cluster })
      }
    }
    expect(died).toBeGreaterThan(15)
  })
})

function standingOf(dir: string): string {
  try {
    return folderIdentity(dir) === undefined ? 'empty' : 'founded'
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    return error.message
  }
}
