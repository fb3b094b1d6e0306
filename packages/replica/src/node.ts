export { DamagedError } from './storage/storage-errors.js'
export { moveToQuarantine } from './node/quarantine.js'
export { NodeClock } from './node/node-clock.js'
export { NodeDisk } from './node/node-disk.js'
export { makeFolder, syncFolder } from './node/folder-sync.js'
export { type NodeReplicaOptions, openNodeReplica } from './node/open-replica.js'
export { type ClaimOptions, claimFolder, type FolderOwner } from './node/ownership/claim-folder.js'
export { NodeRandom } from './node/node-random.js'
export {
  type Backup,
  backupBytes,
  backupHeader,
  type BackupHeader,
  backupPieces,
  readBackup,
} from './node/offline/backup-file.js'
export { writeWhole } from './node/offline/durable-files.js'
export type { KnownEpoch } from './node/offline/known-epochs.js'
export type { FolderContent } from './node/offline/examine.js'
export type { MovedHold } from './node/offline/raise-epoch.js'
export { recoverFolder, type RecoverOptions, type RecoverReport } from './node/offline/recover.js'
export { restoreBackup, type RestoreOptions, type RestoreReport } from './node/offline/restore.js'
export { folderIdentity, wasAlwaysAlone } from './node/offline/folder-identity.js'
export { type OfflineOptions, verifyFolder } from './node/offline/verify.js'
