import type { Raft } from '@leasehold/raft'
import type { Logger } from '../platform.js'

/** A leader whose write takes longer than this many election timeouts transfers leadership. */
const HANG_TIMEOUTS = 4

export interface WriteUnderWay {
  readonly underWayMs: number
  readonly electionTimeoutMs: number
}

/**
 * Transfers leadership away from a member whose disk hangs. Such a leader applies nothing, since entries must be on its own
 * disk first, but its heartbeats keep the others from electing a new leader. Called every tick until the transfer succeeds or
 * the disk responds.
 */
export function handOverOnHangingDisk(raft: Raft, { underWayMs, electionTimeoutMs }: WriteUnderWay, log: Logger): void {
  if (raft.role !== 'leader' || raft.transferee !== 0 || underWayMs < HANG_TIMEOUTS * electionTimeoutMs) return
  const { successor } = raft
  if (successor === undefined) return
  log.warn('the disk hangs: transferring leadership', { underWayMs, to: successor, term: raft.term })
  raft.transferLeadership(successor)
}
