import { StorageError } from '@leasehold/core'
import { DiskFullError } from '../platform.js'

/** Durable data in the folder has changed or is missing. The member must never start on it. */
export class DamagedError extends StorageError {}

/** The folder's history contradicts that of its cluster. */
export class ContradictionError extends DamagedError {
  constructor(message: string) {
    super(message, { hint: 'start this member with --repair: it gets everything from the others' })
  }
}

/** Data that was once complete on the disk has changed or is missing. */
export function damaged(file: string, offset: number, why: string, hint?: string): DamagedError {
  return new DamagedError(`${file} is damaged at byte ${offset}: ${why}`, {
    hint:
      hint ??
      'a member of a cluster is started again with --repair, and gets everything from the others; a single server is restored from a backup',
  })
}

/** The file was written by another version of this program. It is intact and must not be changed. */
export function otherFormat(file: string, format: number, known: number): StorageError {
  return new StorageError(`${file} has format ${format}; this program reads format ${known}`, {
    hint: 'start the version that wrote it, or a later one',
  })
}

const LOST_HINT =
  'it acknowledges nothing more. Bring the folder back to its path and start it again; if it was deleted, restore a backup, or start a member of a cluster with --repair: on an empty path, serve founds a new service'

/** The data folder is no longer at its path. Further writes to its open files would be lost. */
export class FolderLostError extends StorageError {
  constructor({ why, hint = LOST_HINT }: { readonly why: string; readonly hint?: string }) {
    super(why, { hint })
  }
}

/** A write or sync failed. The state of the disk is unknown from here on, so nothing is retried. */
export function writeFailed(file: string, cause: unknown): StorageError {
  if (cause instanceof FolderLostError) return cause
  const text = cause instanceof Error ? cause.message : String(cause)
  const { code } = (cause ?? {}) as { code?: unknown }
  const isGone = code === 'ENOENT' || code === 'ENOTDIR'
  return new StorageError(isGone ? `${file}, or its folder, is gone: ${text}` : `writing ${file} failed: ${text}`, {
    cause,
    hint: isGone
      ? LOST_HINT
      : 'the member has stopped; repair the disk, then start it again: everything acknowledged is kept',
  })
}

/** Converts an error of a file system call on a data folder to a StorageError. Returns other errors unchanged. */
export function folderFailed(dir: string, error: unknown): unknown {
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  const isFull = error instanceof DiskFullError || code === 'ENOSPC' || code === 'EDQUOT'
  if (!isFull && (typeof code !== 'string' || typeof syscall !== 'string')) return error
  const hint = isFull
    ? 'the disk is full: make room, then start again; everything acknowledged is kept'
    : 'check the path of the data folder and its permissions'
  return new StorageError(`${dir} cannot be used: ${(error as Error).message}`, { cause: error, hint })
}
