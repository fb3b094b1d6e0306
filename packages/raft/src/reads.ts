import type { Index, NodeId } from './types.js'

/** A read that waits for its confirmation: one of this member (`from` is itself) or of a follower. */
export interface Read {
  readonly from: NodeId
  /** The number that `from` has given it. */
  readonly context: number
}

interface Round {
  readonly number: number
  /** The commit index when the round was opened. */
  readonly index: Index
  readonly reads: Read[]
  readonly acks: Set<NodeId>
}

/**
 * ReadIndex (thesis 6.4): a read may run at the commit index of its arrival once a quorum has answered heartbeats that were
 * sent after that arrival. The leader numbers the rounds, and heartbeats and their answers carry the number, so a delayed
 * answer never confirms a later read, whatever numbers the members gave to their reads.
 */
export class ReadRounds {
  #rounds: Round[] = []
  #last = 0
  /** Reads that arrived before the leader has committed an entry of its term. */
  #early: Read[] = []

  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    let size = this.#early.length
    for (const round of this.#rounds) size += round.reads.length
    return size
  }

  get full(): boolean {
    return this.size >= this.#max
  }

  /** Number of the newest open round; 0: none. */
  get newest(): number {
    return this.#rounds.length === 0 ? 0 : this.#last
  }

  wait(read: Read): void {
    this.#early.push(read)
  }

  takeEarly(): Read[] {
    const early = this.#early
    this.#early = []
    return early
  }

  /** Opens a round and returns its number. */
  open(index: Index, reads: readonly Read[], self: NodeId): number {
    this.#rounds.push({ number: ++this.#last, index, reads: [...reads], acks: new Set([self]) })
    return this.#last
  }

  /** Records the answer to a heartbeat with this round's number, which also counts for all earlier rounds. */
  acknowledge(number: number, from: NodeId): void {
    for (const round of this.#rounds) if (round.number <= number) round.acks.add(from)
  }

  /** Removes and returns the confirmed rounds, oldest first. */
  takeConfirmed(isQuorum: (acks: ReadonlySet<NodeId>) => boolean): { index: Index; reads: readonly Read[] }[] {
    const done: Round[] = []
    while (this.#rounds.length > 0 && isQuorum((this.#rounds[0] as Round).acks))
      done.push(this.#rounds.shift() as Round)
    return done
  }

  /** Removes and returns all reads: they will not be confirmed here. */
  dropAll(): Read[] {
    const reads = [...this.#early, ...this.#rounds.flatMap((round) => round.reads)]
    this.#early = []
    this.#rounds = []
    return reads
  }
}

/**
 * First numbers are multiples of this, drawn from 2^32 of them: numbers from before a restart practically never recur, and
 * all are safe integers.
 */
const SPREAD = 2 ** 19

/**
 * A follower's reads that its leader was asked to confirm. Their numbers begin at a random place after each start of the
 * member, because a late answer to a question from before a restart must not answer a new one.
 */
export class ForwardedReads {
  readonly #contexts = new Map<number, number>()
  #next = 0

  readonly #max: number
  readonly #random: (limit: number) => number

  constructor(max: number, random: (limit: number) => number) {
    this.#max = max
    this.#random = random
  }

  get full(): boolean {
    return this.#contexts.size >= this.#max
  }

  /** Returns the number under which the leader is asked. */
  ask(context: number): number {
    if (this.#next === 0) this.#next = 1 + this.#random(2 ** 32) * SPREAD
    this.#contexts.set(++this.#next, context)
    return this.#next
  }

  /** The context of an answered question; undefined if it was not asked here or was abandoned. */
  answer(number: number): number | undefined {
    const context = this.#contexts.get(number)
    this.#contexts.delete(number)
    return context
  }

  dropAll(): number[] {
    const contexts = [...this.#contexts.values()]
    this.#contexts.clear()
    return contexts
  }
}
