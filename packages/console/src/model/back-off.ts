const FIRST_MS = 500
const MOST_MS = 5_000

/** The delay before the next attempt after `failures` consecutive failures: doubles, up to five seconds. */
export function backOffMs(failures: number): number {
  return Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10))
}
