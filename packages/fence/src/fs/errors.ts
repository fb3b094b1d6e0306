import { InvalidError, StorageError } from '@leasehold/core'

/** The system's code of an error. */
export function codeOf(error: unknown): string | undefined {
  return (error as { code?: string } | null)?.code
}

export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT'
}

/** Rethrows every error but ENOENT. */
export function ignoreMissing(error: unknown): void {
  if (!isMissing(error)) throw error
}

/** Maps errors of the file system to typed errors. Others pass unchanged. */
export function explain(error: unknown): unknown {
  const message = error instanceof Error ? error.message : String(error)
  switch (codeOf(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EIO':
      return new StorageError(`the file cannot be written: ${message}`, { cause: error })
    case 'EPERM':
    case 'ENOTSUP':
    case 'ENOSYS':
      return new InvalidError(`the guard needs a file system with hard links: ${message}`, { cause: error })
    default:
      return error
  }
}
