import { InvalidError } from '../errors.js'

/** Malformed bytes: at `offset` of the input, `expected` should be. */
export class CodecError extends InvalidError {
  static override readonly errorClass: string = 'CodecError'
  readonly offset: number
  readonly expected: string

  constructor(offset: number, expected: string) {
    super(`malformed bytes at offset ${offset}: expected ${expected}`)
    this.offset = offset
    this.expected = expected
  }
}
