import { StorageError } from '@leasehold/core'
import { DiskFullError } from '../platform.js'

/** What is in the data folder is not what was once durable there. The member must never start on it. */
export class DamagedError extends StorageError {}

/** The folder's history is not that of its cluster. */
export class ContradictionError extends DamagedError {
  constructor(message: string) {
    super(message, { hint: 'start this member with --repair: it gets everything from the others' })
  }
}

/** Data that was once complete on the disk has changed, or is missing. */
export function damaged(file: string, offset: number, why: string, hint?: string): DamagedError {
  return new DamagedError(`${file} is damaged at byte ${offset}: ${why}`, {
    hint:
      hint ??
      'a member of a cluster is started again with --repair, and gets everything from the others; a single server is restored from a backup',
  })
}

/** Written by another version of this program. Nothing is wrong with it, and nothing may be changed in it. */
export function otherFormat(file: string, format: number, known: number): StorageError {
  return new StorageError(`${file} has format ${format}; this program reads format ${known}`, {
    hint: 'start the version that wrote it, or a later one',
  })
}

const LOST_HINT =
  'it acknowledges nothing more. Bring the folder back to its path and start it again; if it was deleted, restore a backup, or start a member of a cluster with --repair: on an empty path, serve founds a new service'

/** The data folder is not at its path any more. What is written to the open files would be lost with them. */
export class FolderLostError extends StorageError {
  constructor({ why, hint = LOST_HINT }: { readonly why: string; readonly hint?: string }) {
    super(why, { hint })
  }
}

/** A write or sync failed. What is on the disk is unknown from here on, so nothing is tried again. */
export function writeFailed(file: string, cause: unknown): StorageError {
  if (cause instanceof FolderLostError) return cause
  const text = cause instanceof Error ? cause.message : String(cause)
  const { code } = (cause ?? {}) as { code?: unknown }
  const isGone = code === 'ENOENT' || code === 'ENOTDIR'
  return new StorageError(isGone ? `${file}, or its folder, is gone: ${text}` : `writing ${file} failed: ${text}`, {
    cause,
    hint: isGone
      ? LOST_HINT
      : 'the member has stopped; look after the disk, then start it again: everything acknowledged is kept',
  })
}

/** What the machine says about a data folder, as an error of ours; any other error as it is. */
export function folderFailed(dir: string, error: unknown): unknown {
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  const isFull = error instanceof DiskFullError || code === 'ENOSPC' || code === 'EDQUOT'
  if (!isFull && (typeof code !== 'string' || typeof syscall !== 'string')) return error
  const hint = isFull
    ? 'the disk is full: make room, then start again; everything acknowledged is kept'
    : 'check the path of the data folder, and who may write into it'
  return new StorageError(`${dir} cannot be used: ${(error as Error).message}`, { cause: error, hint })
}
