import type { QueryResult, ServerMessage } from '@leasehold/core'

/** A row of a query's answer, an event, and the head of any answer: about this many bytes each. */
const ROW_BYTES = 200
/** A query looks at many rows even when it answers few: it counts as no less than this. */
const QUERY_BYTES_MIN = 16 * 1024

interface Later {
  readonly correlation: number
  readonly answer: () => void
}

/**
 * The reads of one stream, in the order of their arrival. Answers of more than a bound in one turn, or that wait for a
 * client which does not take them, put further reads off to later turns: however many are asked for in one frame, they
 * neither pile up in memory nor keep other clients waiting. A read that was put off sees a later state, which is as fresh.
 */
export class ReadThrottle {
  readonly #room: number
  readonly #backlog: (() => number) | undefined
  #later: Later[] = []
  #given = 0

  /**
   * @param room most bytes that are answered in one turn and wait for the client, by estimate
   * @param backlog what the transport has not sent yet; without it reads are never put off
   */
  constructor(room: number, backlog: (() => number) | undefined) {
    this.#room = room
    this.#backlog = backlog
  }

  /** Reads that were put off. */
  get waiting(): number {
    return this.#later.length
  }

  /** Nothing was answered in this turn, and nothing waits: {@link resume} would change nothing. */
  get idle(): boolean {
    return this.#given === 0 && this.#later.length === 0
  }

  /** Answers now, or when the client has taken what it was sent before. */
  answerInTurn(correlation: number, answer: () => void): void {
    if (this.#later.length === 0 && !this.#crowded) answer()
    else this.#later.push({ correlation, answer })
  }

  /** An answer to a read is on its way out. */
  answered(message: ServerMessage): void {
    this.#given += bytesOf(message)
  }

  /** Another turn, after the transport has sent something: goes on as far as there is room. */
  resume(): void {
    this.#given = 0
    while (this.#later.length > 0 && !this.#crowded) (this.#later.shift() as Later).answer()
  }

  /** Nobody wants the answer any more. */
  drop(correlation: number): void {
    if (this.#later.length > 0) this.#later = this.#later.filter((one) => one.correlation !== correlation)
  }

  clear(): void {
    this.#later = []
  }

  get #crowded(): boolean {
    return this.#backlog !== undefined && this.#given + this.#backlog() > this.#room
  }
}

function bytesOf(message: ServerMessage): number {
  if (message.kind === 'queryAnswer') return Math.max(QUERY_BYTES_MIN, queryBytes(message.answer))
  if (message.kind === 'getAnswer') return ROW_BYTES + (message.register?.value.length ?? 0)
  if (message.kind === 'events') return ROW_BYTES * (1 + message.items.length)
  return ROW_BYTES
}

function queryBytes({ held, pending, delays, sessions }: QueryResult): number {
  let bytes = ROW_BYTES * (held.length + pending.length + delays.length + sessions.length)
  for (const { data } of held) bytes += data.length
  return bytes
}
