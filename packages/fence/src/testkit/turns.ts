/** One turn of the event loop: whatever is ready runs first. Delays of the test kit are counted in turns, never slept. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await turn()
}

/** How many turns an operation takes. */
export async function turnsOf(operation: () => Promise<unknown>): Promise<number> {
  const running = operation()
  let count = 0
  while (!(await isSettled(running))) count++
  await running
  return count
}

/** Whether a promise has settled by the end of this turn. Never rejects. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return await Promise.race([
    promise.then(
      () => true,
      () => true,
    ),
    turn().then(() => false),
  ])
}

/** A generator of pseudo-random numbers in [0, 1), so that a run can be repeated (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
