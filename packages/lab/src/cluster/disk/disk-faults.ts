/** What may go wrong with a disk. Chances are per thousand; 0 switches a fault off. */
export interface DiskFaults {
  /** Time of a write with sync, in milliseconds: at least, and spread. */
  readonly syncMs: number
  readonly syncSpreadMs: number
  /** A sync takes this long in a slow episode. */
  readonly slowMs: number
  /** Chance that an unsynced sector is lost in a crash. */
  readonly loss: number
  /** Chance that an unsynced change of the folder is kept in a crash. */
  readonly kept: number
  /** Changes of the folder survive in their order, as in a journal; otherwise any subset of them. */
  readonly journal: boolean
  /** The folder's changes need no sync of their own. */
  readonly folderSynced: boolean
}

export const QUIET_DISK: DiskFaults = {
  syncMs: 1,
  syncSpreadMs: 2,
  slowMs: 2000,
  loss: 500,
  kept: 500,
  journal: false,
  folderSynced: false,
}

/** Something that is the matter with a disk, now. */
export interface DiskTrouble {
  /** The next write with sync fails, and what it wrote is dropped. */
  failSync: boolean
  /** The next write fails before anything was written. */
  failWrite: boolean
  /** Nothing can be written. */
  readOnly: boolean
  /** Syncs take long. */
  slow: boolean
  /** Syncs do not come to their end. */
  stuck: boolean
  /** The next read of a file gives bytes of another place. */
  misdirect: boolean
  /** The folder is not at its path any more; files that are open can be used as before. */
  removed: boolean
}

export function noTrouble(): DiskTrouble {
  return {
    failSync: false,
    failWrite: false,
    readOnly: false,
    slow: false,
    stuck: false,
    misdirect: false,
    removed: false,
  }
}
