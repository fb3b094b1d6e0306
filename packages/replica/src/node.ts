export { DamagedError } from './storage-errors.js'
export { setAside } from './node/aside.js'
export { NodeClock } from './node/clock.js'
export { NodeDisk } from './node/disk.js'
export { makeFolder, syncFolder } from './node/folders.js'
export { type NodeReplicaOptions, openNodeReplica } from './node/open.js'
export { type ClaimOptions, claimFolder, type FolderOwner } from './node/owner.js'
export { NodeRandom } from './node/random.js'
export {
  type Backup,
  backupBytes,
  backupHeader,
  type BackupHeader,
  backupPieces,
  readBackup,
} from './node/offline/backup-file.js'
export { writeWhole } from './node/offline/files.js'
export type { KnownEpoch } from './node/offline/epochs.js'
export type { FolderContent } from './node/offline/examine.js'
export type { MovedHold } from './node/offline/raise.js'
export { recoverFolder, type RecoverOptions, type RecoverReport } from './node/offline/recover.js'
export { restoreBackup, type RestoreOptions, type RestoreReport } from './node/offline/restore.js'
export { folderIdentity, wasAlwaysAlone } from './node/offline/standing.js'
export { type OfflineOptions, verifyFolder } from './node/offline/verify.js'
