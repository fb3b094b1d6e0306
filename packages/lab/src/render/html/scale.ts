/** Pixels for a gap between two moments: at least, at most, and how fast it grows. */
const GAP_MIN = 12
const GAP_MAX = 130
const GROWTH = 26
/** Gaps up to this are not stretched further, in seconds. */
const CLOSE = 0.004
/** Moments that are nearer than this share a place. */
const SAME = 0.000_5

/** Short stories are spread over this width. */
const WIDTH_MIN = 1_280

/** A time axis that gives room to where much happens, and little to where nothing does. */
export class Scale {
  readonly width: number
  readonly #knots: { readonly at: number; x: number }[] = []

  constructor(times: readonly number[], until: number) {
    const sorted = [0, ...times.filter((at) => at > 0 && at < until), until].sort((a, b) => a - b)
    let x = 0
    let last = 0
    for (const at of sorted) {
      const gap = at - last
      if (this.#knots.length > 0 && gap < SAME) continue
      if (gap > 0) x += Math.min(GAP_MAX, GAP_MIN + GROWTH * Math.max(0, Math.log2(gap / CLOSE)) * 0.35)
      this.#knots.push({ at, x })
      last = at
    }
    const stretch = Math.max(1, WIDTH_MIN / Math.max(1, x))
    for (const knot of this.#knots) knot.x *= stretch
    this.width = x * stretch
  }

  x(at: number): number {
    const knots = this.#knots
    if (at <= 0) return 0
    for (let i = 1; i < knots.length; i++) {
      const left = knots[i - 1] as (typeof knots)[number]
      const right = knots[i] as (typeof knots)[number]
      if (at <= right.at) return left.x + ((at - left.at) / (right.at - left.at)) * (right.x - left.x)
    }
    return this.width
  }

  /** Places for marks of the axis: moments that are not too close to each other. */
  ticks(apart: number): { readonly at: number; readonly x: number }[] {
    const ticks: { at: number; x: number }[] = []
    for (const knot of this.#knots) {
      const last = ticks.at(-1)
      if (last === undefined || knot.x - last.x >= apart) ticks.push(knot)
    }
    return ticks
  }
}
