import { performance } from 'node:perf_hooks'
import type { Clock } from '../platform.js'

const TIMER_MAX_MS = 2 ** 31 - 1
// Captured at load time, so that a test framework's fake timers do not stop a member.
const { setTimeout, clearTimeout, setImmediate, clearImmediate } = globalThis

/** The machine's monotonic clock. Its timers keep the process alive only while `keepAlive` is set. */
export class NodeClock implements Clock {
  readonly #keepAlive: boolean

  constructor(keepAlive = false) {
    this.#keepAlive = keepAlive
  }

  monotonicMs(): number {
    return Math.trunc(performance.now())
  }

  wallMs(): number {
    return Date.now()
  }

  /** A delay of 0 runs the callback after all events that have already arrived. */
  after(delayMs: number, callback: () => void): () => void {
    if (delayMs <= 0) {
      const turn = setImmediate(callback)
      return () => clearImmediate(turn)
    }
    const timer = setTimeout(callback, Math.min(delayMs, TIMER_MAX_MS))
    if (!this.#keepAlive) timer.unref()
    return () => clearTimeout(timer)
  }
}
