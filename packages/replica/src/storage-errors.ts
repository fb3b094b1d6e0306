import { StorageError } from '@leasehold/core'

/** Data that was once complete on the disk has changed, or is missing. The member must not start on it. */
export function damaged(file: string, offset: number, why: string, hint?: string): StorageError {
  return new StorageError(`${file} is damaged at byte ${offset}: ${why}`, {
    hint:
      hint ??
      'a member of a cluster can be removed and added again as a new one; a single server is restored from a backup',
  })
}

/** A write or sync failed. What is on the disk is unknown from here on, so nothing is tried again. */
export function writeFailed(file: string, cause: unknown): StorageError {
  const text = cause instanceof Error ? cause.message : String(cause)
  return new StorageError(`writing ${file} failed: ${text}`, {
    cause,
    hint: 'the member has stopped; look after the disk, then start it again: everything acknowledged is kept',
  })
}
