/**
 * Everything that the client needs from the machine. It is captured once, when this module loads, so that fake timers
 * that a test framework installs later do not stop renewals. Nothing else in this package touches clocks, timers,
 * random numbers or the console; tests and the lab hand in a platform of their own.
 */
export interface ClientPlatform {
  /** Milliseconds of a clock that never steps. It may stop while the machine is suspended. */
  monotonicMs(): number
  /** Milliseconds of the calendar clock. It may step. */
  wallMs(): number
  /**
   * Runs `callback` once, not before `delayMs` (at most {@link TIMER_MAX_MS}) have passed. Keeps the process alive only
   * with `keepAlive`: for timers on which a caller waits. Returns a function that cancels it.
   */
  after(delayMs: number, callback: () => void, keepAlive?: boolean): () => void
  /**
   * Keeps the process alive until the returned function is called (further calls have no effect): for waits that have no timer of
   * their own. Absent on platforms without a process.
   */
  keepAlive?(): () => void
  /** Runs `callback` at the end of this turn of the event loop, so that the messages of one turn are sent together. */
  soon(callback: () => void): void
  /** Unpredictable random bytes. */
  randomBytes(length: number): Uint8Array
  /** 0 ≤ x < 1, for jitter. */
  random(): number
  abortController(): AbortController
  /** A point of the calendar clock, for logs. */
  date(wallMs: number): Date
  /** Reports an error that has no caller, such as one thrown by a listener of the application. */
  report(message: string, error: unknown): void
}

/** The longest delay of a JavaScript timer. Longer waits are chained. */
export const TIMER_MAX_MS = 2 ** 31 - 1

const globalSetTimeout = globalThis.setTimeout
const globalClearTimeout = globalThis.clearTimeout
const globalSetInterval = globalThis.setInterval
const globalClearInterval = globalThis.clearInterval
const globalQueueMicrotask = globalThis.queueMicrotask
/** Node runs it when all microtasks of this turn are done: one frame for a whole burst. Elsewhere a microtask has to do. */
const globalSetImmediate = (globalThis as { setImmediate?: (callback: () => void) => unknown }).setImmediate
const globalPerformance = globalThis.performance
const globalPerformanceNow = globalPerformance.now
const globalDate = globalThis.Date
const globalDateNow = globalDate.now
const globalDateParse = globalDate.parse
const globalRandom = Math.random
const globalCrypto = globalThis.crypto
const globalAbortController = globalThis.AbortController
const globalConsole = globalThis.console

/** What all copies of this package in one process share, by `Symbol.for`. */
export const processWide = globalThis as unknown as Record<symbol, unknown>

/** Milliseconds of an ISO 8601 time; NaN: it is none. Reads no clock. */
export const parseIsoTime = (text: string): number => globalDateParse.call(globalDate, text)
/** `toISOString` of a calendar time. Reads no clock. */
export const isoTime = (wallMs: number): string => new globalDate(wallMs).toISOString()

/** Waits that keep the process alive, and the one timer that they share. */
let waits = 0
let waitTimer: ReturnType<typeof setInterval> | undefined

export const defaultPlatform: ClientPlatform = {
  monotonicMs: () => globalPerformanceNow.call(globalPerformance),
  wallMs: () => globalDateNow.call(globalDate),
  after(delayMs, callback, keepAlive = false) {
    const timer: unknown = globalSetTimeout(callback, delayMs)
    if (!keepAlive && typeof timer === 'object' && timer !== null && 'unref' in timer) {
      if (typeof timer.unref === 'function') timer.unref()
    }
    return () => globalClearTimeout(timer as ReturnType<typeof setTimeout>)
  },
  keepAlive() {
    if (waits++ === 0) waitTimer = globalSetInterval(() => {}, TIMER_MAX_MS)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      if (--waits === 0) globalClearInterval(waitTimer)
    }
  },
  soon(callback) {
    if (globalSetImmediate === undefined) globalQueueMicrotask(callback)
    else globalSetImmediate(callback)
  },
  randomBytes: (length) => globalCrypto.getRandomValues(new Uint8Array(length)),
  random: () => globalRandom(),
  abortController: () => new globalAbortController(),
  date: (wallMs) => new globalDate(wallMs),
  report: (message, error) => globalConsole.error(message, error),
}
