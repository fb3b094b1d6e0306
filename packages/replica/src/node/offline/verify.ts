import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { StorageError } from '@leasehold/core'
import { NodeDisk } from '../node-disk.js'
import { claimFolder } from '../ownership/claim-folder.js'
import { examineFolder, type FolderContent } from './examine.js'
import type { ReportProgress } from './progress.js'

export interface OfflineOptions {
  readonly dir: string
  /** Takes over the folder from an owner on another machine that is known to be dead. */
  readonly takeOver?: boolean
  readonly progress?: ReportProgress
}

/**
 * Verifies everything in a member's folder, as its only owner.
 * @throws StorageError on damage, with file and offset, or when the folder has an owner
 */
export async function verifyFolder(options: OfflineOptions): Promise<FolderContent> {
  return await asOwner(options, (dir) => examineFolder(new NodeDisk(dir), options.progress))
}

/** Runs `work` as the only owner of an existing folder. */
export async function asOwner<T>(options: OfflineOptions, work: (dir: string) => T | Promise<T>): Promise<T> {
  const dir = resolve(options.dir)
  if (!existsSync(dir)) throw new StorageError(`there is no folder ${dir}`, { hint: 'check the path' })
  const owner = await claimFolder(dir, { name: 'offline', takeOver: options.takeOver ?? false })
  try {
    return await work(dir)
  } finally {
    await owner.release()
  }
}
