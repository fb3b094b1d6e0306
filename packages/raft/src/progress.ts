import { Inflights } from './inflights.js'
import type { Index } from './types.js'

export type ProgressState = 'probe' | 'replicate' | 'snapshot'

/**
 * What a leader knows of a peer's log. `match` is acknowledged, `next` is what to send next.
 *
 *   probe: one append at a time, until the logs are known to meet; entered at the start and on every doubt.
 *   replicate: appends are sent ahead, as many as fit in flight.
 *   snapshot: nothing is sent until the snapshot has arrived or failed.
 */
export class Progress {
  state: ProgressState = 'probe'
  match: Index = 0
  /** Highest commit index that was sent (and may have been lost). */
  private sentCommit: Index = 0
  pendingSnapshot: Index = 0
  /** Heard from since the last quorum check. */
  recentlyActive = false
  /** Probe: an append is under way. Replicate: the inflight bound is reached. */
  paused = false
  readonly inflights: Inflights

  constructor(
    public next: Index,
    public isLearner: boolean,
    inflightsMax: number,
    inflightBytesMax: number,
  ) {
    this.inflights = new Inflights(inflightsMax, inflightBytesMax)
  }

  private enter(state: ProgressState): void {
    this.paused = false
    this.pendingSnapshot = 0
    this.state = state
    this.inflights.reset()
  }

  becomeProbe(): void {
    const snapshot = this.state === 'snapshot' ? this.pendingSnapshot : 0
    this.enter('probe')
    this.next = Math.max(this.match + 1, snapshot + 1)
    this.lowerSentCommit()
  }

  becomeReplicate(): void {
    this.enter('replicate')
    this.next = this.match + 1
  }

  becomeSnapshot(index: Index): void {
    this.enter('snapshot')
    this.pendingSnapshot = index
    this.next = index + 1
    this.sentCommit = index
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

  /** Whether an append or heartbeat with this commit index would tell the peer anything new that it can use. */
  canBumpCommit(commit: Index): boolean {
    return commit > this.sentCommit && this.sentCommit < this.next - 1
  }

  sent(commit: Index): void {
    this.sentCommit = commit
  }

  /** An acknowledgement; false if it tells nothing new. */
  maybeUpdate(index: Index): boolean {
    if (index <= this.match) return false
    this.match = index
    this.next = Math.max(this.next, index + 1)
    this.paused = false
    return true
  }

  /**
   * Whether an acknowledgement of `index`, which is known already, answers the probe that is under way: that one asks after
   * `next - 1`, and no answer to it names less. What does is of an earlier question, such as an append of an earlier term
   * of this leader, which is answered with 0 in the present term: the logs have not met there, and need not begin there.
   */
  isMetAt(index: Index): boolean {
    return this.state === 'probe' && index === this.match && index === this.next - 1
  }

  /** A refusal of the append after `rejected`; false if it is stale. */
  maybeDecrease(rejected: Index, hint: Index): boolean {
    if (this.state === 'replicate') {
      if (rejected <= this.match) return false
      this.next = this.match + 1
      this.lowerSentCommit()
      return true
    }
    if (this.next - 1 !== rejected) return false
    this.next = Math.max(Math.min(rejected, hint + 1), this.match + 1)
    this.lowerSentCommit()
    this.paused = false
    return true
  }

  private lowerSentCommit(): void {
    this.sentCommit = Math.min(this.sentCommit, this.next - 1)
  }

  get isPaused(): boolean {
    return this.state === 'snapshot' || this.paused
  }
}
