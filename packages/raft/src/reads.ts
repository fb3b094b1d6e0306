import type { Index, NodeId } from './types.js'

/** A read that waits for its confirmation: of this node (`from` is itself) or handed on by a follower. */
export interface Read {
  readonly from: NodeId
  /** The asker's own number. */
  readonly context: number
}

interface Round {
  readonly number: number
  readonly index: Index
  readonly reads: Read[]
  readonly acks: Set<NodeId>
}

/**
 * ReadIndex (thesis 6.4): a read may run at the commit index of its arrival once a quorum has confirmed, by heartbeats
 * sent after that arrival, that this leader still leads. Rounds are numbered by the leader and the number travels in the
 * heartbeats, so a delayed acknowledgement can never confirm a later read, whatever numbers the askers chose.
 */
export class ReadRounds {
  #rounds: Round[] = []
  #last = 0
  /** Reads that came before the leader has committed an entry of its term. */
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

  /** A heartbeat with this round's number was answered; that confirms all earlier rounds too. */
  acknowledge(number: number, from: NodeId): void {
    for (const round of this.#rounds) if (round.number <= number) round.acks.add(from)
  }

  /** Takes out the rounds that are confirmed, oldest first. */
  takeConfirmed(isQuorum: (acks: ReadonlySet<NodeId>) => boolean): { index: Index; reads: readonly Read[] }[] {
    const done: Round[] = []
    while (this.#rounds.length > 0 && isQuorum((this.#rounds[0] as Round).acks))
      done.push(this.#rounds.shift() as Round)
    return done
  }

  /** All reads that will not be confirmed here any more. */
  dropAll(): Read[] {
    const reads = [...this.#early, ...this.#rounds.flatMap((round) => round.reads)]
    this.#early = []
    this.#rounds = []
    return reads
  }
}

/** First numbers are drawn from 2^32 × {@link SPREAD}: two lives of a member do not meet, and sums stay safe integers. */
const SPREAD = 2 ** 19

/**
 * A follower's reads that its leader was asked to confirm. They travel under numbers that begin at a random place in each
 * life of the member: a late answer to a question of an earlier life must not answer a new one.
 */
export class HandedReads {
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

  /** The number to ask with. */
  ask(context: number): number {
    if (this.#next === 0) this.#next = 1 + this.#random(2 ** 32) * SPREAD
    this.#contexts.set(++this.#next, context)
    return this.#next
  }

  /** The context of an answered question; undefined: nobody asked it here, or not any more. */
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
