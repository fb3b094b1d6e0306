import { InvalidError } from '@leasehold/core'

/** A history that cannot be read or makes no sense for the model. `line` counts from 1. */
export class HistoryError extends InvalidError {
  static override readonly errorClass: string = 'HistoryError'
  readonly line: number | undefined

  constructor(message: string, line?: number) {
    super(message)
    this.line = line
  }

  override toJSON(): Record<string, unknown> {
    return { ...super.toJSON(), line: this.line }
  }
}
