import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StorageError } from '@leasehold/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NodeDisk } from '../../../src/node/node-disk.js'
import { exportAtOnce } from '../../../src/snapshots/state-export.js'
import { backupBytes, backupHeader, backupPieces, readBackup } from '../../../src/node/offline/backup-file.js'
import { examineFolder } from '../../../src/node/offline/examine.js'
import { Folders, usedFolder } from '../../support/folders.js'

const folders = new Folders()
afterAll(() => folders.close())

let file: string
let whole: Buffer
let hash: string

beforeAll(async () => {
  const dir = folders.make()
  await usedFolder(dir)
  const { state, identity, term } = examineFolder(new NodeDisk(dir))
  hash = state.hash()
  const copy = exportAtOnce(state)
  const facts = {
    cluster: identity.cluster,
    term,
    member: 'n1',
    read: 'linearizable',
    takenAt: 'now',
    members: [],
  } as const
  const header = backupHeader(copy, facts)
  whole = Buffer.concat([...backupPieces(header, copy)])
  expect(whole.length).toBe(backupBytes(header))
  file = join(folders.make(), 'backup')
})

const read = (bytes: Uint8Array): unknown => {
  writeFileSync(file, bytes)
  try {
    return readBackup(file).state.hash()
  } catch (error) {
    return error
  }
}

describe('a backup file', () => {
  it('returns the state that was written', () => {
    expect(read(whole)).toBe(hash)
    expect(readBackup(file).header).toMatchObject({ format: 'leasehold-backup', epoch: 1, hash, read: 'linearizable' })
    expect(readFileSync(file)).toEqual(whole)
  })

  it('is refused when any byte has changed, with an error that names the file', () => {
    for (let at = 0; at < whole.length; at++) {
      const bytes = Buffer.from(whole)
      bytes[at] = (bytes[at] as number) ^ (1 << (at % 8))
      const outcome = read(bytes)
      expect([at, outcome]).toEqual([at, expect.any(StorageError)])
      expect((outcome as Error).message).toContain(file)
    }
  })

  it('is refused when it was truncated anywhere or has trailing bytes', () => {
    for (let length = 0; length < whole.length; length++) {
      expect([length, read(whole.subarray(0, length))]).toEqual([length, expect.any(StorageError)])
    }
    expect(read(Buffer.concat([whole, Buffer.from('\n')]))).toBeInstanceOf(StorageError)
  })

  it('reports a file that is not a backup or has a later version', () => {
    expect(read(Buffer.from('{"some":"json"}\n'))).toMatchObject({ message: expect.stringMatching(/is no backup/) })
    const later = Buffer.from(whole.toString('latin1').replace('"version":1', '"version":2'), 'latin1')
    expect(read(later)).toMatchObject({ message: expect.stringMatching(/has format 2/) })
  })
})
