/** A small seeded generator (mulberry32): the same seed, the same run. */
export class Prng {
  private state: number
  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** 0 ≤ n < limit. */
  below(limit: number): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let t = this.state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * limit)
  }

  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }
}
