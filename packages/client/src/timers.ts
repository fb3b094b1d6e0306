import { type ClientPlatform, TIMER_MAX_MS } from './platform.js'

/** Runs `callback` once after `delayMs`, chaining timers where one cannot wait that long. Infinity: never. */
export function after(platform: ClientPlatform, delayMs: number, callback: () => void): () => void {
  if (delayMs === Number.POSITIVE_INFINITY) return () => {}
  if (delayMs <= TIMER_MAX_MS) return platform.after(Math.max(0, delayMs), callback)
  let cancel = platform.after(TIMER_MAX_MS, () => {
    cancel = after(platform, delayMs - TIMER_MAX_MS, callback)
  })
  return () => cancel()
}
