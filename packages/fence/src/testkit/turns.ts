/** Waits for one turn of the event loop, so that everything ready runs first. The test kit counts delays in turns and never sleeps. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await turn()
}

/** Returns how many turns an operation takes. */
export async function turnsOf(operation: () => Promise<unknown>): Promise<number> {
  const running = operation()
  let count = 0
  while (!(await isSettled(running))) count++
  await running
  return count
}

/** Returns whether a promise has settled by the end of this turn. Never rejects. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return await Promise.race([
    promise.then(
      () => true,
      () => true,
    ),
    turn().then(() => false),
  ])
}

/** Returns a reproducible generator of pseudo-random numbers in [0, 1) (mulberry32). */
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
