import type { RaftLimits } from '../../src/index.js'
import type { Prng } from './prng.js'

/** Faults at the worst moments, and messages that arrive when they are no longer expected. */
export interface Moments {
  /** A leader dies, is cut off or stands still: per 1000 steps, and more often while something of it is not committed. */
  readonly depose: number
  /** One leader is isolated at a time: it returns when the next one is isolated. */
  readonly rolling: boolean
  /** A member dies with a write under way: per 1000 steps. */
  readonly writing: number
  /** All members lose power at once: per 10 000 steps. */
  readonly blackout: number
  /** A member stands still, such as a suspended machine: per 10 000 steps. */
  readonly pause: number
  /** For how long a dead member is down, and another one stands still or is cut off, at most, in steps. */
  readonly downMax: number
  /** So many of a hundred messages are held back, for up to {@link Moments.lateMax} steps. */
  readonly late: number
  readonly lateMax: number
  /** The same for snapshots: they are large, travel on their own, and are sent again without an acknowledgement. */
  readonly lateSnapshots: number
  /** So many of a hundred steps bring a read. */
  readonly reads: number
  /** So many of a hundred steps bring a proposal. */
  readonly work: number
}

export function momentsOf(random: Prng, some: (max: number) => number): Moments {
  return {
    depose: random.chance(40) ? 0 : random.below(150),
    rolling: random.chance(50),
    writing: some(100),
    blackout: some(60),
    pause: some(100),
    downMax: random.pick([4, 15, 30, 60]),
    late: some(15),
    lateMax: random.pick([20, 60, 150]),
    reads: random.pick([6, 20, 40]),
    work: random.pick([30, 60, 90]),
    lateSnapshots: random.pick([0, 30, 80]),
  }
}

/** Short timeouts make for many terms; small appends let what is sent together arrive apart. */
export function limitsOf(random: Prng): Partial<RaftLimits> {
  return {
    electionTicks: random.pick([4, 6, 10]),
    inflightsMax: 3,
    appendBytesMax: random.pick([1, 1, 8, 64]),
    uncommittedBytesMax: 4096,
    committedBytesMax: 100,
  }
}
