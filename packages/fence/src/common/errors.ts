import { InvalidError, UnavailableError, UnknownOutcomeError } from '@leasehold/core'

/** The row that a fenced update addresses does not exist, so nothing was written. Its code is `mismatch`. */
export class MissingRowError extends InvalidError {
  static override readonly errorClass: string = 'MissingRowError'
  readonly table: string
  constructor(table: string, where: string) {
    super(`there is no row of ${table} with ${where}`, { code: 'mismatch', hint: 'nothing was written' })
    this.table = table
  }
}

/** The store did not answer, and nothing was written. */
export function unavailable(what: string, cause: unknown): UnavailableError {
  return new UnavailableError(`${what}: ${messageOf(cause)}`, {
    cause,
    hint: 'nothing was written; the same call may succeed later',
  })
}

/** A write was sent, and its answer is lost. */
export function unknownOutcome(cause: unknown): UnknownOutcomeError {
  const message = `the write was sent and its answer is lost: it may or may not have taken effect (${messageOf(cause)})`
  return new UnknownOutcomeError(message, {
    cause,
    hint: 'abandon the unit of work, or repeat it under a new hold',
  })
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
