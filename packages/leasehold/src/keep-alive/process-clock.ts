/** Reads the monotonic clock that all threads of this process share, in milliseconds. */
export function processClockMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}
