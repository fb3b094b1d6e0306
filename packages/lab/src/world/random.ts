/**
 * Random numbers of the world, by counter: the n-th number of a concern of an entity is a pure function of
 * (seed, concern, entity, n). So a fault that is taken out of a schedule shifts no other draw, and a shrunk schedule
 * still fails in the same way. Integers only: no `Math.log` and the like, whose last digit may differ between engines.
 */

/** FNV-1a over UTF-16 units, as an unsigned 32-bit number. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

function scramble(value: number): number {
  let x = value
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad)
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97)
  return x ^ (x >>> 15)
}

/** One unsigned 32-bit number. All arguments are 32-bit; `n` counts. */
export function mix(seed: number, stream: number, entity: number, n: number): number {
  return drawOf(rootOf(seed, stream, entity), n)
}

/** The part of {@link mix} that all draws of a stream share. */
function rootOf(seed: number, stream: number, entity: number): number {
  let x = scramble(seed ^ 0x9e3779b9)
  x = scramble((x + Math.imul(stream, 0x85ebca6b)) ^ 0x27d4eb2f)
  return scramble((x + Math.imul(entity, 0xc2b2ae35)) ^ 0x165667b1)
}

function drawOf(root: number, n: number): number {
  return scramble((root + Math.imul(n, 0x9e3779b1)) ^ n) >>> 0
}

export const PER_MILLION = 1_000_000

/** The draws of one concern of one entity. */
export class RandomStream {
  readonly #root: number
  #n = 0

  constructor(seed: number, concern: string, entity: string) {
    this.#root = rootOf(seed, hashText(concern), hashText(entity))
  }

  /** The `n`-th draw, whatever was drawn before. */
  at(n: number): number {
    return drawOf(this.#root, n)
  }

  /** The next draw, 0 ≤ x < 2^32. */
  next(): number {
    return this.at(this.#n++)
  }

  /** 0 ≤ x < limit ≤ 2^32. */
  below(limit: number): number {
    return scaled(this.next(), limit)
  }

  chance(perMillion: number): boolean {
    return this.below(PER_MILLION) < perMillion
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.next() >>> 24)
  }

  /** A draw with mean `mean` and a long tail. */
  tail(mean: number): number {
    return longTail(this.next(), mean)
  }
}

/** A 32-bit draw as a whole number below `limit` ≤ 2^32. The product has at most 64 bits, so it is taken in halves. */
export function scaled(draw: number, limit: number): number {
  const high = (draw >>> 16) * limit
  const low = (draw & 0xffff) * limit
  return Math.floor((high + Math.floor(low / 0x10000)) / 0x10000)
}

/** −ln(1 − (i + ½)/256) × 1024; beyond the last row the same table begins again at ln 256. */
const TAIL = [
  2, 6, 10, 14, 18, 22, 26, 30, 35, 39, 43, 47, 51, 55, 60, 64, 68, 73, 77, 81, 85, 90, 94, 99, 103, 107, 112, 116, 121,
  125, 130, 134, 139, 144, 148, 153, 158, 162, 167, 172, 176, 181, 186, 191, 196, 200, 205, 210, 215, 220, 225, 230,
  235, 240, 245, 250, 255, 260, 266, 271, 276, 281, 287, 292, 297, 303, 308, 313, 319, 324, 330, 335, 341, 347, 352,
  358, 364, 369, 375, 381, 387, 392, 398, 404, 410, 416, 422, 428, 434, 441, 447, 453, 459, 465, 472, 478, 484, 491,
  497, 504, 510, 517, 524, 530, 537, 544, 551, 558, 565, 572, 579, 586, 593, 600, 607, 614, 622, 629, 636, 644, 651,
  659, 667, 674, 682, 690, 698, 706, 714, 722, 730, 738, 746, 755, 763, 772, 780, 789, 797, 806, 815, 824, 833, 842,
  851, 860, 870, 879, 889, 898, 908, 917, 927, 937, 947, 957, 968, 978, 988, 999, 1010, 1020, 1031, 1042, 1054, 1065,
  1076, 1088, 1099, 1111, 1123, 1135, 1147, 1160, 1172, 1185, 1197, 1210, 1224, 1237, 1250, 1264, 1278, 1292, 1306,
  1321, 1335, 1350, 1365, 1380, 1396, 1412, 1428, 1444, 1460, 1477, 1494, 1512, 1529, 1547, 1565, 1584, 1603, 1622,
  1642, 1662, 1683, 1704, 1725, 1747, 1769, 1792, 1815, 1839, 1863, 1888, 1914, 1940, 1967, 1995, 2023, 2052, 2082,
  2113, 2145, 2179, 2213, 2248, 2285, 2322, 2362, 2403, 2445, 2490, 2537, 2585, 2637, 2690, 2747, 2808, 2872, 2940,
  3013, 3092, 3177, 3270, 3373, 3487, 3615, 3762, 3933, 4138, 4395, 4740, 5263,
] as const
const TAIL_LAST = 255
const TAIL_BEYOND = 5678

/** A 32-bit draw as an exponential-like whole number with mean `mean`; at most 22 times the mean. */
export function longTail(draw: number, mean: number): number {
  let sum = 0
  for (let shift = 24; shift >= 0; shift -= 8) {
    const row = (draw >>> shift) & 0xff
    if (row < TAIL_LAST) return Math.floor((mean * (sum + (TAIL[row] as number))) / 1024)
    sum += TAIL_BEYOND
  }
  return Math.floor((mean * sum) / 1024)
}
