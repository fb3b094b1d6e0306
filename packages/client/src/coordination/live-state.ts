import { EpochChangedError, UnavailableError, WatchError } from '@leasehold/core'
import { linkedController } from '../async/bounded-wait.js'
import type { WatchEvent } from '../namespace-view.js'

/** Pause before the state is read again: after a gap or a restore, and while the service is unreachable. */
export const RESYNC_PAUSE_MS = 100

/** What a live view (of a leader, of a register) needs from its client. */
export interface LiveStateContext {
  watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<WatchEvent>
  abortController(): AbortController
  /** A pause before the next attempt. */
  pause(): Promise<void>
}

/** A state that can be read and watched. */
export interface LiveStateSource<T> {
  /** The state now, and the cursor from which its changes are watched. */
  read(): Promise<{ readonly now: T; readonly at: string }>
  /** The state after an event; undefined: unchanged. */
  next(event: WatchEvent, shown: T): Promise<T | undefined>
  /** Whether two states are equal. */
  same(one: T, other: T): boolean
}

/**
 * Yields the state now, and again after every change, until `signal` aborts. After a gap, a restore or an outage the state is
 * read again; an error before the first state is thrown.
 */
export async function* liveState<T>(
  context: LiveStateContext,
  prefix: string,
  signal: AbortSignal | undefined,
  source: LiveStateSource<T>,
): AsyncGenerator<T, void, void> {
  const { controller, unlink } = linkedController(context.abortController(), signal)
  try {
    let shown: T | undefined
    while (!controller.signal.aborted) {
      try {
        const { now, at } = await source.read()
        const isNews = shown === undefined || !source.same(now, shown)
        shown = now
        if (isNews) yield now
        for await (const event of context.watch(prefix, at, controller.signal)) {
          const next = await source.next(event, shown)
          if (next === undefined) continue
          shown = next
          yield next
        }
      } catch (error) {
        if (controller.signal.aborted) return
        if (shown === undefined || !isResync(error)) throw error
        await context.pause()
      }
    }
  } finally {
    unlink()
    controller.abort()
  }
}

function isResync(error: unknown): boolean {
  return error instanceof WatchError || error instanceof EpochChangedError || error instanceof UnavailableError
}
