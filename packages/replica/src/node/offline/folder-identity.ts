import { existsSync } from 'node:fs'
import { type Identity, readIdentity } from '../../storage/identity.js'
import { decodeMeta } from '../../cluster-meta.js'
import { readSnapshot, snapshotNames } from '../../snapshots/snapshot-store.js'
import { isInitialized } from '../../storage/storage.js'
import { NodeDisk } from '../node-disk.js'

/** Returns the identity in a folder; undefined for an empty one. @throws StorageError when it is damaged or half restored */
export function folderIdentity(dir: string): Identity | undefined {
  if (!existsSync(dir)) return undefined
  const disk = new NodeDisk(dir)
  return isInitialized(disk) ? readIdentity(disk) : undefined
}

/** Whether a member's folder belongs to a service that has always had a single member. */
export function wasAlwaysAlone(dir: string): boolean {
  const disk = new NodeDisk(dir)
  const newest = snapshotNames(disk).at(-1)
  if (newest === undefined) return false
  const { members } = decodeMeta(readSnapshot(disk, newest).meta)
  return members.length === 1 && members[0]?.peer === ''
}
