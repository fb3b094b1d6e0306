import { LeaseholdError, StorageError, UnavailableError } from '@leasehold/core'
import { notSetUp } from '../errors.js'

/** SQLite's result codes that matter here, by number: node:sqlite reports only the number. */
const RESULT_CODES: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  13: 'SQLITE_FULL',
}

export function codeOf(error: unknown): string {
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown }
  // The low byte is the primary code.
  if (typeof errcode === 'number') return RESULT_CODES[errcode & 0xff] ?? ''
  return typeof code === 'string' ? code : ''
}

export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY')
}

/** Maps errors of the driver to typed errors. Others pass unchanged. */
export function explain(error: unknown): unknown {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  if (/no such (table|column):.*leasehold_/.test(message)) {
    return notSetUp('sqlite', message, error)
  }
  if (isBusy(error)) {
    return new UnavailableError(`another connection is writing: ${message}`, {
      cause: error,
      hint: 'nothing was written; try again',
    })
  }
  if (codeOf(error).startsWith('SQLITE_FULL')) {
    return new StorageError(`the disk of the database is full: ${message}`, {
      cause: error,
      hint: 'nothing was written',
    })
  }
  return error
}
