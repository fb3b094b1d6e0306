import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { InvalidError, StorageError } from '@leasehold/core'
import { IDENTITY_FILE, readIdentity } from '../../storage/identity.js'
import { exportAtOnce } from '../../snapshots/state-export.js'
import { RECOVERING } from '../../storage/storage.js'
import { NodeDisk } from '../node-disk.js'
import { NodeRandom } from '../node-random.js'
import { type Backup, backupHeader, backupPieces, readBackup } from './backup-file.js'
import { checkEpoch, type KnownEpoch } from './known-epochs.js'
import { examineFolder } from './examine.js'
import { syncFolder } from '../folder-sync.js'
import { syncWhole, writeWhole } from './durable-files.js'
import type { ReportProgress } from './progress.js'
import { type MovedHold, raise } from './raise-epoch.js'
import { writeRaised } from './restore.js'
import { asOwner, type OfflineOptions } from './verify.js'

export interface RecoverOptions extends OfflineOptions {
  /** Must be above every epoch that was ever used. */
  readonly epoch: number | undefined
}

export interface RecoverReport {
  readonly member: string
  /** The new cluster, and the old one of the folder. */
  readonly cluster: string
  readonly oldCluster: string
  readonly epoch: number
  readonly oldEpoch: number
  /** The last entry in this folder. Later entries of other members are lost. */
  readonly lastIndex: number
  readonly lastTerm: number
  readonly known: readonly KnownEpoch[]
  readonly holds: readonly MovedHold[]
  /** Where the old files are now. */
  readonly keptIn: string
}

const BEFORE = /^before-epoch-(\d{1,5})$/
/** The files of the old service. Spare and reserve files are reused. The identity is moved last. */
const OLD = /^(log|snapshot)-|^(muster\.json|acknowledged|contradicted)$/

/**
 * Turns the folder of a member whose cluster has lost its majority into a service with a single member, with a higher epoch and
 * a new identity. Every entry in its log counts, committed or not, as if the member had been elected.
 *
 * Crash safe: the state is first written completely into the file `recovering`. From then on no member starts on the folder,
 * and a repeated call continues: the old files move into `before-epoch-N`, the old identity last, and the new files are
 * created.
 *
 * @throws InvalidError when the epoch is not above all known ones; StorageError on damage, an owner, or a failing disk
 */
export async function recoverFolder(options: RecoverOptions): Promise<RecoverReport> {
  return await asOwner(options, async (dir) => {
    const disk = new NodeDisk(dir)
    const file = join(dir, RECOVERING)
    const begun = existsSync(file) ? readBackup(file) : undefined
    if (begun) syncWhole(file)
    const known = begun ? [{ epoch: begun.header.epoch, from: 'the folder' }] : knownEpochs(disk)
    const epoch = checkEpoch(options.epoch, known)
    if (begun && begun.header.raiseTo !== epoch) {
      throw new InvalidError(`the recover of ${dir} was begun with --epoch ${begun.header.raiseTo}`, {
        hint: 'repeat it with the same epoch',
      })
    }
    const backup = begun ?? begin(disk, file, epoch, options.progress)
    options.progress?.('making the new service')
    const keptIn = join(dir, `before-epoch-${epoch}`)
    const { header } = backup
    archiveOldFiles(dir, keptIn, header.cluster)
    const raised = raise(backup.state, { epoch, term: header.term, name: header.member }, new NodeRandom())
    await writeRaised(dir, raised)
    disk.remove(RECOVERING)
    syncFolder(dir)
    return {
      member: header.member,
      cluster: raised.identity.cluster,
      oldCluster: header.cluster,
      epoch,
      oldEpoch: header.epoch,
      lastIndex: header.index,
      lastTerm: header.term,
      known,
      holds: raised.holds,
      keptIn,
    }
  })
}

function knownEpochs(disk: NodeDisk): KnownEpoch[] {
  const identity = readIdentity(disk)
  if (!identity)
    throw new StorageError(`${disk.path} has no identity`, { hint: 'check the path: it is not a member’s folder' })
  const earlier = readdirSync(disk.path).flatMap((name) => {
    const match = BEFORE.exec(name)
    return match ? [{ epoch: Number(match[1]), from: 'an earlier recover' }] : []
  })
  return [{ epoch: identity.epoch, from: 'the folder' }, ...earlier]
}

/** Verifies the folder and writes its state into one file. This cannot be undone. */
function begin(disk: NodeDisk, file: string, epoch: number, steps: ReportProgress | undefined): Backup {
  const { identity, meta, state, term } = examineFolder(disk, steps)
  steps?.('writing the state')
  const copy = exportAtOnce(state)
  const header = backupHeader(copy, {
    cluster: identity.cluster,
    term,
    member: identity.name,
    read: 'stale',
    takenAt: new Date().toISOString(),
    members: meta.members.map(({ node, name }) => {
      return { name, role: meta.configuration.voters.includes(node) ? 'voter' : 'learner' }
    }),
    raiseTo: epoch,
  })
  writeWhole(file, backupPieces(header, copy))
  return { header, state }
}

/** Moves the old files into the archive folder. Once the old identity is moved, the files here belong to the new service. */
function archiveOldFiles(dir: string, to: string, cluster: string): void {
  const disk = new NodeDisk(dir)
  const identity = readIdentity(disk)
  mkdirSync(to, { recursive: true, mode: 0o700 })
  const move = (names: readonly string[]): void => {
    for (const name of names) renameSync(join(dir, name), join(to, name))
    syncFolder(to)
    syncFolder(dir)
  }
  // An earlier call may have been killed between its last move and the sync.
  if (identity?.cluster !== cluster) return move([])
  move(disk.list().filter((name) => OLD.test(name)))
  move([IDENTITY_FILE])
}
