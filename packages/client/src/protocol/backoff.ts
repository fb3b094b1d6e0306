import type { ClientPlatform } from '../platform.js'

const FIRST_MS = 50
const MAX_MS = 2_000

/** Pause before the n-th attempt in a row (from 1) to connect: none, then doubling up to `maxMs`; half of it random. */
export function backoffMs(platform: ClientPlatform, attempt: number, maxMs = MAX_MS): number {
  if (attempt <= 1) return 0
  const full = Math.min(maxMs, FIRST_MS * 2 ** Math.min(attempt - 2, 16))
  return full / 2 + (full / 2) * platform.random()
}
