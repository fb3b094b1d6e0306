import { InvalidError } from '../errors.js'

/** Bytes that are not what the codec writes. `offset` is where in the input, `expected` what should stand there. */
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
