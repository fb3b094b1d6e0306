import { type ErrorCode, ERRORS } from '../error-table.js'
import { InvalidError } from '../errors.js'
import type { CloseSession, EndReason, Event, Result } from '../operations.js'
import type { Reader } from './reader.js'
import type { Writer } from './writer.js'

/** Codec of a string enumeration, one byte per value. The numbers are part of the format: never change or reuse one, only add. */
export class EnumCodec<Word extends string> {
  readonly numbers: Readonly<Record<Word, number>>
  readonly #what: string
  readonly #byWord: Map<string, number>
  readonly #byNumber: (Word | undefined)[] = []

  constructor(what: string, numbers: Readonly<Record<Word, number>>) {
    this.#what = what
    this.numbers = numbers
    this.#byWord = new Map(Object.entries<number>(numbers))
    for (const [word, number] of this.#byWord) this.#byNumber[number] = word as Word
  }

  write(writer: Writer, word: Word): void {
    const number = this.#byWord.get(word)
    if (number === undefined) throw new InvalidError(`not ${this.#what}: ${JSON.stringify(word)}`)
    writer.u8(number)
  }

  read(reader: Reader): Word {
    const number = reader.u8()
    const word = this.#byNumber[number]
    if (word === undefined) throw reader.wrong(`${this.#what}, not ${number}`, reader.offset - 1)
    return word
  }
}

const errorNumbers = Object.entries(ERRORS).map(([code, { wire }]) => [code, wire])

export const ERROR_CODES = new EnumCodec<ErrorCode>('an error code', Object.fromEntries(errorNumbers))

export const END_REASONS = new EnumCodec<EndReason>('a reason for an end', {
  released: 1,
  expired: 2,
  closed: 3,
  operator: 4,
  death: 5,
  stolen: 6,
  moved: 7,
})

export const CLOSERS = new EnumCodec<CloseSession['by']>('the closer of a session', { owner: 1, operator: 2, death: 3 })

export const CANCELLED_STATES = new EnumCodec<Extract<Result, { kind: 'cancelled' }>['was']>('what was cancelled', {
  queued: 1,
  granted: 2,
  ended: 3,
  unknown: 4,
})

export const UNQUEUE_REASONS = new EnumCodec<Extract<Event, { kind: 'unqueued' }>['reason']>('why a wait ended', {
  timeout: 1,
  cancelled: 2,
  'session-ended': 3,
})
