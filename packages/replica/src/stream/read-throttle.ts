import type { QueryResult, ServerMessage } from '@leasehold/core'

/** Estimated bytes of a query row, of an event, and of the head of any answer. */
const ROW_BYTES = 200
/** Least cost of a query: it may scan many rows even when it returns few. */
const QUERY_BYTES_MIN = 16 * 1024

interface Later {
  readonly correlation: number
  readonly answer: () => void
}

/**
 * Backpressure for the reads of one stream, in order of arrival. When the answers of one turn plus the unsent ones exceed a
 * bound, further reads wait for later turns. So many reads in one frame neither fill the memory nor delay other clients. A
 * deferred read sees a later state, which is at least as fresh.
 */
export class ReadThrottle {
  readonly #room: number
  readonly #backlog: (() => number) | undefined
  #later: Later[] = []
  #given = 0

  /**
   * @param room most estimated bytes of answers in one turn plus unsent bytes
   * @param backlog returns the bytes that the transport has not sent; without it, reads are never deferred
   */
  constructor(room: number, backlog: (() => number) | undefined) {
    this.#room = room
    this.#backlog = backlog
  }

  /** Number of deferred reads. */
  get waiting(): number {
    return this.#later.length
  }

  /** Whether no read was answered in this turn and none is deferred: {@link ReadThrottle.resume} would have no effect. */
  get idle(): boolean {
    return this.#given === 0 && this.#later.length === 0
  }

  /** Answers now, or after the client has received earlier answers. */
  answerInTurn(correlation: number, answer: () => void): void {
    if (this.#later.length === 0 && !this.#crowded) answer()
    else this.#later.push({ correlation, answer })
  }

  /** Counts an answer against the bound. */
  answered(message: ServerMessage): void {
    this.#given += bytesOf(message)
  }

  /** Starts another turn after the transport has sent something: answers deferred reads while there is room. */
  resume(): void {
    this.#given = 0
    while (this.#later.length > 0 && !this.#crowded) (this.#later.shift() as Later).answer()
  }

  /** Drops a deferred read. */
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
