import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { InvalidError, StorageError } from '@leasehold/core'
import { checkMemberName } from '../../replica-options.js'
import { IDENTITY_FILE } from '../../storage/identity.js'
import { writeFailed } from '../../storage/storage-errors.js'
import { initializeFolder, RESTORING } from '../../storage/storage.js'
import { NodeDisk } from '../node-disk.js'
import { makeFolder, syncFolder } from '../folder-sync.js'
import { claimFolder } from '../ownership/claim-folder.js'
import { NodeRandom } from '../node-random.js'
import { readBackup } from './backup-file.js'
import { checkEpoch, type KnownEpoch, noteEpoch, notedEpochs } from './known-epochs.js'
import { appendDurably } from './durable-files.js'
import { type MovedHold, type Raised, raise } from './raise-epoch.js'
import type { ReportProgress } from './progress.js'

export interface RestoreOptions {
  readonly file: string
  /** An empty or missing folder. */
  readonly dir: string
  /** Must be above every epoch that was ever used. */
  readonly epoch: number | undefined
  /** Name of the new member; default `n1`. */
  readonly name?: string
  readonly progress?: ReportProgress
}

export interface RestoreReport {
  /** Origin of the backup. */
  readonly backup: { readonly cluster: string; readonly epoch: number; readonly index: number; readonly read: string }
  readonly cluster: string
  readonly member: string
  readonly epoch: number
  readonly index: number
  /** The epochs that were known before. */
  readonly known: readonly KnownEpoch[]
  /** Persistent holds, under their new ids. */
  readonly holds: readonly MovedHold[]
}

/** Owner files, which may exist in an otherwise empty folder. */
const OWNER = /^owner[.-]/

/**
 * Creates a new service with a single member from a backup, in a higher epoch: its tokens are above all tokens of the old
 * service.
 *
 * Order: create the marker of an unfinished restore, the note next to the backup, the snapshot and the identity; remove the
 * marker. After a crash before the identity, no member starts on the folder; a repeated restore with a later epoch starts
 * over.
 *
 * @throws InvalidError when the epoch is not above all known ones, or the folder is in use; StorageError on a damaged
 *   backup or a disk that fails
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { file, name = 'n1' } = options
  const dir = resolve(options.dir)
  checkMemberName(name)
  const { progress } = options
  progress?.('reading the backup')
  const { header, state } = readBackup(file)
  const known = [{ epoch: header.epoch, from: 'the backup' }, ...notedEpochs(file), ...folderEpochs(dir)]
  const epoch = checkEpoch(options.epoch, known)
  refuseUsed(dir)
  makeFolder(dir)
  const owner = await claimFolder(dir, { name })
  try {
    refuseUsed(dir)
    const raised = raise(state, { epoch, term: header.term, name }, new NodeRandom())
    const { cluster } = raised.identity
    const at = new Date().toISOString()
    mark(dir, `${JSON.stringify({ epoch, file: resolve(file), at })}\n`)
    noteEpoch(file, { epoch, at, data: dir, cluster })
    progress?.('writing the state')
    await writeRaised(dir, raised)
    const disk = new NodeDisk(dir)
    disk.remove(RESTORING)
    syncFolder(dir)
    const backup = { cluster: header.cluster, epoch: header.epoch, index: header.index, read: header.read }
    return { backup, cluster, member: name, epoch, index: raised.snapshot.index, known, holds: raised.holds }
  } finally {
    await owner.release()
  }
}

/** Creates the marker file. Only its existence matters; its text is informational. */
function mark(dir: string, text: string): void {
  const file = join(dir, RESTORING)
  try {
    appendDurably(file, text)
  } catch (error) {
    throw writeFailed(file, error)
  }
}

/** Writes the snapshot and then the identity of a new member. */
export async function writeRaised(dir: string, { identity, snapshot }: Raised): Promise<void> {
  await new Promise<void>((done, failed) => {
    initializeFolder(new NodeDisk(dir), identity, snapshot, (error) => {
      if (error === undefined) done()
      else if (error instanceof StorageError) failed(error)
      else failed(new StorageError(`writing ${dir} failed: ${error.message}`, { cause: error }))
    })
  })
}

/** Returns the epoch of a folder that is not empty. Ignores damage, which is reported elsewhere. */
function folderEpochs(dir: string): KnownEpoch[] {
  try {
    const [json = ''] = readFileSync(join(dir, IDENTITY_FILE), 'utf8').split('\n')
    const { epoch } = JSON.parse(json) as { epoch: number }
    return Number.isSafeInteger(epoch) ? [{ epoch, from: `the folder ${dir}` }] : []
  } catch {
    return []
  }
}

function refuseUsed(dir: string): void {
  const names = existsSync(dir) ? readdirSync(dir).filter((name) => !OWNER.test(name)) : []
  const unfinished = names.includes(RESTORING) && !names.includes(IDENTITY_FILE)
  if (names.length === 0 || unfinished) return
  throw new InvalidError(`${dir} is not empty: it has ${names[0]}`, {
    hint: 'a backup is restored into an empty folder; move the old one elsewhere and keep it until the restore has proved good',
  })
}
