import { Inflights } from './inflights.js'
import type { Index } from './types.js'

export type ProgressState = 'probe' | 'replicate' | 'snapshot'

/**
 * A leader's view of one peer's log. Invariant: 0 ≤ `match` < `next`, and `match` ≤ the leader's last index.
 *
 *   probe: one append at a time, until the leader knows where the logs meet. Initial state, and the one after every doubt.
 *   replicate: appends are sent ahead of their acknowledgements, as many as fit in flight.
 *   snapshot: nothing is sent until the snapshot has arrived or failed.
 */
export class Progress {
  state: ProgressState = 'probe'
  /** The highest index known to be durable in the peer's log and equal to the leader's. Only grows within a term. */
  match: Index = 0
  /** The index of the next entry to send. Below it, entries were sent (replicate) or are assumed present (probe). */
  next: Index
  /** Learners acknowledge entries and never count towards a quorum. Equal to the role in the applied configuration. */
  isLearner: boolean
  /** The highest commit index sent to the peer, which may have been lost on the way. Never above `next` − 1. */
  #sentCommit: Index = 0
  /** The index of the snapshot under way; 0 outside the snapshot state, and after the snapshot has failed. */
  pendingSnapshot: Index = 0
  /** Whether a message of the peer arrived since the last quorum check. */
  recentlyActive = false
  /** Probe: an append is under way. Replicate: `inflights` is full. Cleared by any answer that brings news. */
  paused = false
  /** Appends under way; empty outside the replicate state. */
  readonly inflights: Inflights

  constructor(next: Index, isLearner: boolean, inflightsMax: number, inflightBytesMax: number, inflights?: Inflights) {
    this.next = next
    this.isLearner = isLearner
    this.inflights = inflights ?? new Inflights(inflightsMax, inflightBytesMax)
  }

  /** A copy with another role. Both share their `inflights`: only one of them may be used from then on. */
  withRole(isLearner: boolean): Progress {
    const copy = new Progress(this.next, isLearner, 0, 0, this.inflights)
    copy.state = this.state
    copy.match = this.match
    copy.#sentCommit = this.#sentCommit
    copy.pendingSnapshot = this.pendingSnapshot
    copy.recentlyActive = this.recentlyActive
    copy.paused = this.paused
    return copy
  }

  #enter(state: ProgressState): void {
    this.paused = false
    this.pendingSnapshot = 0
    this.state = state
    this.inflights.reset()
  }

  becomeProbe(): void {
    const snapshot = this.state === 'snapshot' ? this.pendingSnapshot : 0
    this.#enter('probe')
    this.next = Math.max(this.match + 1, snapshot + 1)
    this.#lowerSentCommit()
  }

  becomeReplicate(): void {
    this.#enter('replicate')
    this.next = this.match + 1
  }

  becomeSnapshot(index: Index): void {
    this.#enter('snapshot')
    this.pendingSnapshot = index
    this.next = index + 1
    this.#sentCommit = index
  }

  sentEntries(count: number, bytes: number): void {
    if (this.state === 'replicate') {
      if (count > 0) {
        this.next += count
        this.inflights.add(this.next - 1, bytes)
      }
      this.paused = this.inflights.full
    } else if (count > 0) this.paused = true
  }

  /** Whether sending this commit index would let the peer commit more than what was sent before. */
  canBumpCommit(commit: Index): boolean {
    return commit > this.#sentCommit && this.#sentCommit < this.next - 1
  }

  sent(commit: Index): void {
    this.#sentCommit = commit
  }

  /** Records an acknowledgement of everything up to `index`. Returns false if that was known. */
  maybeUpdate(index: Index): boolean {
    if (index <= this.match) return false
    this.match = index
    this.next = Math.max(this.next, index + 1)
    this.paused = false
    return true
  }

  /**
   * Whether an acknowledgement of `index`, which was known, answers the probe that is under way. A probe asks whether the
   * peer has `next - 1`, so no answer to it names less. An acknowledgement that does answers an earlier message, such as an
   * append of an earlier term of this leader, which is answered with 0 in the current term: it does not say where the logs
   * meet.
   */
  isMetAt(index: Index): boolean {
    return this.state === 'probe' && index === this.match && index === this.next - 1
  }

  /** Lowers `next` after the peer has rejected the append that follows `rejected`. Returns false if the rejection is stale. */
  maybeDecrease(rejected: Index, hint: Index): boolean {
    if (this.state === 'replicate') {
      if (rejected <= this.match) return false
      this.next = this.match + 1
      this.#lowerSentCommit()
      return true
    }
    if (this.next - 1 !== rejected) return false
    this.next = Math.max(Math.min(rejected, hint + 1), this.match + 1)
    this.#lowerSentCommit()
    this.paused = false
    return true
  }

  #lowerSentCommit(): void {
    this.#sentCommit = Math.min(this.#sentCommit, this.next - 1)
  }

  get isPaused(): boolean {
    return this.state === 'snapshot' || this.paused
  }
}
