import {
  type Command,
  encodeCommand,
  type ErrorCode,
  LeaseholdError,
  type Millis,
  type Refused,
  type Result,
  Writer,
} from '@leasehold/core'
import type { Random } from '../platform.js'

export type Answer = (result: Result) => void

/** Most commands that wait to be proposed. More are refused with `limit`. */
export const QUEUE_COMMANDS_MAX = 65_536
export const QUEUE_BYTES_MAX = 32 * 1024 * 1024

/** A command of the open batch. */
export interface Waiting {
  readonly bytes: Uint8Array
  readonly answer: Answer
}

export function refused(code: ErrorCode, message: string, hint?: string): Refused {
  return hint === undefined ? { kind: 'refused', code, message } : { kind: 'refused', code, message, hint }
}

/** Whether a command is refused while the disk is full. The reserve is for commands that end, renew or release. */
export function needsRoom(command: Command): boolean {
  return command.kind === 'acquire' || command.kind === 'openSession' || command.kind === 'put'
}

/** Fills in the secrets that the leader mints. */
export function mintSecrets(command: Command, random: Random): Command {
  switch (command.kind) {
    case 'openSession':
      return { ...command, secret: hex128(random) }
    case 'acquire': {
      if (command.persistent || command.portable) return { ...command, secret: hex128(random) }
      if (command.secret === undefined) return command
      const { secret: _, ...rest } = command
      return rest
    }
    case 'adopt':
      return { ...command, newSecret: hex128(random) }
    default:
      return command
  }
}

function hex128(random: Random): string {
  let text = ''
  for (const byte of random.bytes(16)) text += byte.toString(16).padStart(2, '0')
  return text
}

/** The open batch: encoded commands in the order of arrival. */
export class Proposals {
  #waiting: Waiting[] = []
  #bytes = 0
  readonly #writer = new Writer(4096)

  get count(): number {
    return this.#waiting.length
  }

  /** Adds a command, or returns why it is refused. */
  add(command: Command, answer: Answer, bytesMax: number): Refused | undefined {
    if (this.#waiting.length >= QUEUE_COMMANDS_MAX || this.#bytes >= QUEUE_BYTES_MAX) {
      return refused(
        'limit',
        `${this.#waiting.length} commands of ${this.#bytes} bytes are already waiting`,
        'slow down and retry',
      )
    }
    let bytes: Uint8Array
    try {
      bytes = encodeCommand(command)
    } catch (error) {
      if (error instanceof LeaseholdError) return refused(error.code, error.message, error.hint)
      throw error
    }
    if (bytes.length > bytesMax) return refused('limit', `a command of ${bytes.length} bytes; at most ${bytesMax}`)
    this.#waiting.push({ bytes, answer })
    this.#bytes += bytes.length
    return undefined
  }

  /** Adds a command of the member itself before all others. Its result is dropped. */
  addFirst(command: Command): void {
    const bytes = encodeCommand(command)
    this.#waiting.unshift({ bytes, answer() {} })
    this.#bytes += bytes.length
  }

  /** Closes a batch of at most `bytesMax`. Returns the entry's bytes, and the commands in the order of their results. */
  close(at: Millis, bytesMax: number): { readonly data: Uint8Array; readonly batch: readonly Waiting[] } {
    let count = 0
    let bytes = 0
    for (const { bytes: next } of this.#waiting) {
      if (count > 0 && bytes + next.length > bytesMax) break
      bytes += next.length
      count++
    }
    const batch = count === this.#waiting.length ? this.#waiting : this.#waiting.slice(0, count)
    this.#waiting = count === this.#waiting.length ? [] : this.#waiting.slice(count)
    this.#bytes -= bytes
    const writer = this.#writer
    writer.reset()
    writer.varuint(at)
    writer.varuint(count)
    for (const command of batch) writer.raw(command.bytes)
    return { data: writer.take(), batch }
  }

  /** Restores a batch that consensus refused. */
  reopen(batch: readonly Waiting[]): void {
    this.#waiting = [...batch, ...this.#waiting]
    for (const command of batch) this.#bytes += command.bytes.length
  }

  /** Empties the queue and returns its callbacks. */
  drain(): readonly Answer[] {
    const answers = this.#waiting.map((command) => command.answer)
    this.#waiting = []
    this.#bytes = 0
    return answers
  }
}
