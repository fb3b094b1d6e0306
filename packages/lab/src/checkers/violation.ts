/** The invariants by their numbers. L1–L5 are those of consensus itself. */
export const INVARIANTS = {
  I1: 'a lock has one exclusive hold, or shared ones, or as many permits as it has',
  I2: 'tokens of a lock grow with every grant',
  I3: 'a guarded resource takes no older token, refuses no present one, and no acknowledged unit is lost',
  I4: 'a session lives its TTL after the last acknowledged renewal, and not much longer',
  I5: 'a client no longer calls a hold held when its lock is granted to another one',
  I6: 'the history is linearizable',
  I7: 'no hold without a living session',
  I8: 'a request takes effect once',
  I9: 'a watch has no gap, no repeat, and does not go back, or says so',
  I10: 'what was acknowledged survives',
  I11: 'a member whose disk has failed says nothing any more',
  I12: 'with a healthy majority a new acquire succeeds',
  I13: 'members with the same entries have the same state',
  I14: 'who waits is served in turn, and as soon as the lock is free',
  I15: 'no token of a lock is granted twice, by whatever service that follows another one',
  L1: 'a term has one leader',
  L2: 'a committed entry never changes',
  L3: 'a member never applies backwards or leaves an entry out',
  L4: 'no member breaks an assertion of its own',
  L5: 'a member knows in its next life what it has promised: its term, its vote, the entries that it acknowledged',
} as const

export type InvariantId = keyof typeof INVARIANTS

export interface Violation {
  readonly invariant: InvariantId
  /** What happened, for people. */
  readonly text: string
  /** Simulated time, in milliseconds. */
  readonly atMs: number
}

/** Collects violations; a run ends at the first one. */
export class Violations {
  readonly found: Violation[] = []

  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  report(invariant: InvariantId, text: string): void {
    this.found.push({ invariant, text, atMs: this.#nowMs() })
  }

  get any(): boolean {
    return this.found.length > 0
  }
}
