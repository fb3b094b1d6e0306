import { type ClientPlatform, TIMER_MAX_MS } from '../platform.js'

const NOTHING = (): void => {}

/** Keeps the process alive, where there is one, until the returned function is called. */
export function keepAlive(platform: ClientPlatform): () => void {
  return platform.keepAlive?.() ?? NOTHING
}

/**
 * Runs `callback` once after `delayMs`, chaining timers where one cannot wait that long. Infinity: never.
 * `keepAlive` is for timers on which a caller waits.
 */
export function after(platform: ClientPlatform, delayMs: number, callback: () => void, keepAlive = false): () => void {
  if (delayMs === Number.POSITIVE_INFINITY) return () => {}
  if (delayMs <= TIMER_MAX_MS) return platform.after(Math.max(0, delayMs), callback, keepAlive)
  const next = () => {
    cancel = after(platform, delayMs - TIMER_MAX_MS, callback, keepAlive)
  }
  let cancel = platform.after(TIMER_MAX_MS, next, keepAlive)
  return () => cancel()
}
