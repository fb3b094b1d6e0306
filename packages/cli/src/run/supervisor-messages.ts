/** Messages from `leasehold run` to its supervisor. */
export type ToSupervisor =
  | {
      readonly kind: 'start'
      readonly command: readonly string[]
      readonly deadline: Deadline
      readonly killAfterMs: number
    }
  /** A renewal has moved the deadline. */
  | { readonly kind: 'deadline'; readonly deadline: Deadline }
  /** The hold was lost before its deadline: end the group now. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }

/** Messages from the supervisor to `leasehold run`. */
export type FromSupervisor =
  | { readonly kind: 'ready' }
  | { readonly kind: 'started'; readonly pid: number }
  /** The command could not be started. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  /** The command and all other processes of its group have ended. */
  | {
      readonly kind: 'ended'
      readonly code: number | null
      readonly signal: NodeJS.Signals | null
      /** The group was ended because the hold was about to be lost. */
      readonly becauseLost: boolean
    }

/**
 * A deadline shared by two processes of one machine: a time of the machine's monotonic clock and one of its wall clock,
 * whichever comes first. It is absolute, so that a delayed message cannot extend it.
 */
export interface Deadline {
  readonly monotonicMs: number
  readonly wallMs: number
}

/** Returns the deadline `remainingMs` from now. */
export function deadlineIn(remainingMs: number): Deadline {
  return { monotonicMs: monotonicMs() + remainingMs, wallMs: Date.now() + remainingMs }
}

export function remainingUntil(deadline: Deadline): number {
  return Math.min(deadline.monotonicMs - monotonicMs(), deadline.wallMs - Date.now())
}

/** Reads the machine's monotonic clock, in ms: the same for all its processes, unlike `performance.now()`. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}
