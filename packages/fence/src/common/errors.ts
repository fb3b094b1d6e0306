import { InvalidError } from '@leasehold/core'

/** The row that a fenced update looked for does not exist: neither stale nor written. Its code is `mismatch`. */
export class MissingRowError extends InvalidError {
  static override readonly errorClass: string = 'MissingRowError'
  readonly table: string
  constructor(table: string, where: string) {
    super(`there is no row of ${table} with ${where}`, { code: 'mismatch', hint: 'nothing was written' })
    this.table = table
  }
}
