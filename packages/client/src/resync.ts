import { EpochChangedError, UnavailableError, WatchError } from '@leasehold/core'

/** Pause before what is shown is read again: after a gap or a restore, and while the service is away. */
export const RESYNC_PAUSE_MS = 100

/** Whether a view that goes on for ever (a leader, a register) is to be read again after `error`, instead of ending. */
export function isResync(error: unknown): boolean {
  return error instanceof WatchError || error instanceof EpochChangedError || error instanceof UnavailableError
}
