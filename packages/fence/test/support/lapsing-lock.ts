/**
 * A lock whose grants expire after a fixed time, held or not. Then the next waiter is granted, with a higher token. Its holders may be
 * late, like the holders of any lease.
 */
export class LapsingLock {
  #token = 0n
  #busy = false
  readonly #leaseMs: number
  readonly #waiters: (() => void)[] = []

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  async acquire(): Promise<{ token: bigint; release: () => void }> {
    if (this.#busy) await new Promise<void>((resolve) => this.#waiters.push(resolve))
    this.#busy = true
    const token = ++this.#token
    let over = false
    const release = () => {
      if (over) return
      over = true
      clearTimeout(lapse)
      const next = this.#waiters.shift()
      if (next) next()
      else this.#busy = false
    }
    const lapse = setTimeout(release, this.#leaseMs)
    return { token, release }
  }
}

/** A small seeded generator of numbers in [0, 1) (xorshift32). */
export function randomOf(seed: number): () => number {
  let x = seed >>> 0 || 1
  return () => {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    x >>>= 0
    return x / 2 ** 32
  }
}

/** A pause: mostly none, sometimes much longer than the lease. */
export async function stumble(random: () => number, leaseMs: number): Promise<void> {
  const dice = random()
  if (dice < 0.6) return
  const pauseMs = dice < 0.9 ? random() * 2 : leaseMs * (0.5 + random() * 2)
  await new Promise((resolve) => setTimeout(resolve, pauseMs))
}
