import type { Raft } from '@leasehold/raft'
import type { Logger } from '../platform.js'

/** A leader whose write takes longer than so many election timeouts hands over: its disk hangs. */
const HANG_TIMEOUTS = 4

export interface WriteUnderWay {
  readonly underWayMs: number
  readonly electionTimeoutMs: number
}

/**
 * Nothing is applied at a member before it is on its own disk. A leader on a disk that hangs would keep the others from
 * electing one that can serve, because it still sends heartbeats. It asks the voter that has most and is there to lead;
 * called again until that has come about, or the disk is back.
 */
export function handOverOnHangingDisk(raft: Raft, { underWayMs, electionTimeoutMs }: WriteUnderWay, log: Logger): void {
  if (raft.role !== 'leader' || raft.transferee !== 0 || underWayMs < HANG_TIMEOUTS * electionTimeoutMs) return
  const { successor } = raft
  if (successor === undefined) return
  log.warn('the disk hangs: another member is asked to lead', { underWayMs, to: successor, term: raft.term })
  raft.transferLeadership(successor)
}
