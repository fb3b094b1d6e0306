import type { ClientPlatform } from '../../src/platform.js'

interface Timer {
  readonly at: number
  readonly order: number
  readonly callback: () => void
}

/** A platform whose time moves only under control of the test. Counts what is left over. */
export class TestPlatform implements ClientPlatform {
  mono = 1_000
  wall = 1_700_000_000_000
  readonly reports: unknown[] = []
  controllers = 0
  #timers = new Set<Timer>()
  #order = 0
  #seed = 1

  get timers(): number {
    return this.#timers.size
  }

  monotonicMs(): number {
    return this.mono
  }

  wallMs(): number {
    return this.wall
  }

  after(delayMs: number, callback: () => void): () => void {
    if (!(delayMs >= 0 && delayMs <= 2 ** 31 - 1)) throw new RangeError(`a timer of ${delayMs} ms`)
    const timer = { at: this.mono + delayMs, order: this.#order++, callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  soon(callback: () => void): void {
    queueMicrotask(callback)
  }

  randomBytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => Math.floor(this.random() * 256))
  }

  random(): number {
    this.#seed = (this.#seed * 48_271) % 2_147_483_647
    return this.#seed / 2_147_483_647
  }

  abortController(): AbortController {
    this.controllers++
    return new AbortController()
  }

  date(wallMs: number): Date {
    return new Date(wallMs)
  }

  report(_message: string, error: unknown): void {
    this.reports.push(error)
  }

  /** Time passes and every timer gets its turn when it is due. */
  async advance(ms: number): Promise<void> {
    const end = this.mono + ms
    await settle()
    for (;;) {
      const next = this.#next(end)
      if (!next) break
      this.#move(next.at)
      this.#timers.delete(next)
      next.callback()
      await settle()
    }
    this.#move(end)
    await settle()
  }

  /** Time passes, and nothing of this process runs meanwhile: a blocked event loop. Timers fire with the next `advance`. */
  block(ms: number): void {
    this.#move(this.mono + ms)
  }

  /** A suspended machine: the monotonic clock stands still. */
  suspend(ms: number): void {
    this.wall += ms
  }

  #move(to: number): void {
    const by = Math.max(0, to - this.mono)
    this.mono += by
    this.wall += by
  }

  #next(end: number): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) {
      if (timer.at <= end && (!next || timer.at < next.at || (timer.at === next.at && timer.order < next.order)))
        next = timer
    }
    return next
  }
}

/** Runs all pending promise callbacks. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
