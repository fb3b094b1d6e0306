import { type ClientPlatform, defaultPlatform } from '@leasehold/client'
import { InvalidError } from '@leasehold/core'

/** The clock of one client: its timers do not fire while the client is paused. */
export interface ClientClock extends ClientPlatform {
  paused: boolean
  /** Fires the timers that came due during the pause. */
  resume(): void
}

/** The clock of the whole test. */
export interface ServiceClock {
  readonly nowMs: number
  after(delayMs: number, callback: () => void): () => void
  /** Advances the time by `ms`, and fires every timer when it is due. */
  advance(ms: number): Promise<void>
  /** Advances the time by `ms` without firing timers. */
  jump(ms: number): void
}

interface Timer {
  readonly atMs: number
  readonly order: number
  readonly callback: () => void
}

/** Bound on pending timers. */
const TIMERS_MAX = 1_000_000
const START_MS = Date.UTC(2026, 0, 1)

const globalSetImmediate = globalThis.setImmediate
const globalQueueMicrotask = globalThis.queueMicrotask

/** Queues `callback` as a microtask, even while a framework has replaced `queueMicrotask`. */
export function soon(callback: () => void): void {
  globalQueueMicrotask(callback)
}

/** Waits until all promises that can settle now have settled. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    globalSetImmediate(resolve)
  })
}

/** A clock that moves only when the test advances it. */
export class ManualClock implements ServiceClock {
  #nowMs = START_MS
  #order = 0
  readonly #timers = new Set<Timer>()

  get nowMs(): number {
    return this.#nowMs
  }

  /** Number of pending timers. */
  get timers(): number {
    return this.#timers.size
  }

  after(delayMs: number, callback: () => void): () => void {
    if (this.#timers.size >= TIMERS_MAX) throw new InvalidError(`more than ${TIMERS_MAX} timers are set`)
    const timer: Timer = { atMs: this.#nowMs + delayMs, order: this.#order++, callback }
    this.#timers.add(timer)
    // A timer without a delay fires although the time stands still.
    if (delayMs === 0) globalSetImmediate(() => this.#fire(timer))
    return () => {
      this.#timers.delete(timer)
    }
  }

  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    await settle()
    for (let next = this.#next(endMs); next; next = this.#next(endMs)) {
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      this.#fire(next)
      await settle()
    }
    this.#nowMs = endMs
    await settle()
  }

  jump(ms: number): void {
    this.#nowMs += ms
  }

  #fire(timer: Timer): void {
    if (this.#timers.delete(timer)) timer.callback()
  }

  #next(endMs: number): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) {
      if (timer.atMs > endMs) continue
      if (!next || timer.atMs < next.atMs || (timer.atMs === next.atMs && timer.order < next.order)) next = timer
    }
    return next
  }
}

/**
 * A clock over the global timers and `Date` at each call: those of vitest, jest or node:test once they are faked. The test
 * moves them; `advance` is refused.
 */
export class FrameworkClock implements ServiceClock {
  get nowMs(): number {
    return globalThis.Date.now()
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = globalThis.setTimeout(callback, delayMs)
    return () => globalThis.clearTimeout(timer)
  }

  advance(): Promise<void> {
    return Promise.reject(movedElsewhere())
  }

  jump(): void {
    throw movedElsewhere()
  }
}

function movedElsewhere(): InvalidError {
  return new InvalidError("this service follows the test framework's timers", {
    hint: 'write await vi.advanceTimersByTimeAsync(10_000), or leave framework: true out',
  })
}

/** Returns the clock of one client over `clock`. */
export function clientClock(clock: ServiceClock): ClientClock {
  const parked: (() => void)[] = []
  const view: ClientClock = {
    ...defaultPlatform,
    paused: false,
    resume() {
      view.paused = false
      for (const callback of parked.splice(0)) callback()
    },
    monotonicMs: () => clock.nowMs,
    wallMs: () => clock.nowMs,
    after(delayMs, callback) {
      let isCancelled = false
      const run = () => {
        if (!isCancelled) callback()
      }
      const cancel = clock.after(delayMs, () => {
        if (view.paused) parked.push(run)
        else run()
      })
      return () => {
        isCancelled = true
        cancel()
      }
    },
    soon,
  }
  return view
}
