const FIRST_MS = 500
const MOST_MS = 5_000

/** How long to wait before the next try, after so many failures in a row: doubles, and never more than five seconds. */
export function backOffMs(failures: number): number {
  return Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10))
}
