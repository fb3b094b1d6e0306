import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { LockState, StorageError } from '@leasehold/core'
import type { StateExport } from '../../snapshots/state-export.js'
import { damaged } from '../../storage/storage-errors.js'

/*
 * A backup file: one line of JSON (the header), the bytes of the lock state, one line with the SHA-256 of all before.
 * It contains the secrets of sessions and holds: with the file, a client can act for them until the backup is restored.
 */

export const BACKUP_FORMAT = 'leasehold-backup'
export const BACKUP_VERSION = 1
const PIECE_BYTES = 256 * 1024
const HEADER_BYTES_MAX = 1024 * 1024
const TRAILER = '\nsha256 '
const TRAILER_BYTES = TRAILER.length + 64 + 1
const NEWLINE = 0x0a

/** The header of a backup file. */
export interface BackupHeader {
  readonly format: typeof BACKUP_FORMAT
  readonly version: number
  /** 32 hex digits. */
  readonly cluster: string
  readonly epoch: number
  /** Index of the last entry in the backup. */
  readonly index: number
  readonly term: number
  /** The member that the backup came from. */
  readonly member: string
  /** `stale`: the member could not reach a quorum, so newer entries may be missing. */
  readonly read: 'linearizable' | 'stale'
  /** By the clock of that member's machine. Informational only. */
  readonly takenAt: string
  readonly members: readonly { readonly name: string; readonly role: string }[]
  /** Hash of the lock state. */
  readonly hash: string
  readonly stateBytes: number
  /** The new epoch. Only in the file of an unfinished recover. */
  readonly raiseTo?: number
}

export interface Backup {
  readonly header: BackupHeader
  readonly state: LockState
}

/** Returns the header for an export, given the facts that the export lacks. */
export function backupHeader(
  copy: StateExport,
  facts: Pick<BackupHeader, 'cluster' | 'term' | 'member' | 'read' | 'takenAt' | 'members' | 'raiseTo'>,
): BackupHeader {
  const { epoch, index, hash, bytes } = copy
  const fixed = { format: BACKUP_FORMAT, version: BACKUP_VERSION } as const
  return { ...fixed, ...facts, epoch, index, hash, stateBytes: bytes }
}

/** Returns the size of the whole file in bytes. */
export function backupBytes(header: BackupHeader): number {
  return headOf(header).length + header.stateBytes + TRAILER_BYTES
}

/** Yields the file's content, piece by piece. */
export function* backupPieces(header: BackupHeader, { pieces }: StateExport): Generator<Uint8Array, void> {
  const hash = createHash('sha256')
  const head = headOf(header)
  hash.update(head)
  yield head
  for (const whole of pieces) {
    for (let at = 0; at < whole.length; at += PIECE_BYTES) {
      const piece = whole.subarray(at, at + PIECE_BYTES)
      hash.update(piece)
      yield piece
    }
  }
  yield Buffer.from(`${TRAILER}${hash.digest('hex')}\n`)
}

/**
 * Reads and checks a whole backup.
 * @throws StorageError with file and offset when it is damaged, truncated, or not a backup
 */
export function readBackup(file: string): Backup {
  const hint = 'take another copy of the backup, or an older one'
  const bytes = contentOf(file)
  const end = bytes.subarray(0, HEADER_BYTES_MAX).indexOf(NEWLINE)
  const header = parseHeader(file, end < 0 ? '' : bytes.toString('utf8', 0, end))
  const stateEnd = end + 1 + header.stateBytes
  if (bytes.length !== stateEnd + TRAILER_BYTES) {
    const why = `it has ${bytes.length} bytes, not ${stateEnd + TRAILER_BYTES}`
    throw damaged(file, Math.min(bytes.length, stateEnd), why, hint)
  }
  const sum = createHash('sha256').update(bytes.subarray(0, stateEnd)).digest('hex')
  if (bytes.toString('latin1', stateEnd) !== `${TRAILER}${sum}\n`) {
    throw damaged(file, stateEnd, 'its content does not match its checksum', hint)
  }
  let state: LockState
  try {
    state = LockState.restore(new Uint8Array(bytes.subarray(end + 1, stateEnd)))
  } catch (error) {
    throw damaged(file, end + 1, `its state cannot be read: ${(error as Error).message}`, hint)
  }
  if (state.epoch !== header.epoch || state.index !== header.index || state.hash() !== header.hash) {
    throw damaged(file, 0, 'its header and its state contradict each other', hint)
  }
  return { header, state }
}

function headOf(header: BackupHeader): Uint8Array {
  return Buffer.from(`${JSON.stringify(header)}\n`)
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new StorageError(`cannot read the backup ${file}: ${(cause as Error).message}`, { cause })
  }
}

function parseHeader(file: string, line: string): BackupHeader {
  let header: BackupHeader | undefined
  try {
    header = JSON.parse(line) as BackupHeader
  } catch {
    // Reported below.
  }
  if (header?.format !== BACKUP_FORMAT) {
    throw new StorageError(`${file} is no backup of a lock service`, {
      hint: 'backups are written by: leasehold backup FILE',
    })
  }
  if (header.version !== BACKUP_VERSION) {
    throw new StorageError(`${file} has format ${header.version}; this program reads ${BACKUP_VERSION}`, {
      hint: 'restore it with the version that wrote it, or a later one',
    })
  }
  if (
    !Number.isSafeInteger(header.stateBytes) ||
    !Number.isSafeInteger(header.term) ||
    typeof header.cluster !== 'string'
  ) {
    throw damaged(file, 0, 'its header is incomplete')
  }
  return header
}
