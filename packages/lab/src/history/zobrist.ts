/** Pairs of 32-bit numbers, one per operation, whose exclusive or stands for a set of operations. */
export interface ZobristKeys {
  readonly high: Int32Array
  readonly low: Int32Array
}

/** Always the same keys, so that a run can be repeated. */
export function zobristKeys(count: number): ZobristKeys {
  const high = new Int32Array(count)
  const low = new Int32Array(count)
  const next = splitMix(0x2545f491)
  for (let i = 0; i < count; i++) {
    high[i] = next()
    low[i] = next()
  }
  return { high, low }
}

/** Spreads a state's number over 32 bits; another `salt` gives an independent number. */
export function scramble(value: number, salt: number): number {
  let x = Math.imul(value ^ salt, 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 15), 0xc2b2ae35)
  x = Math.imul(x ^ (x >>> 13), 0x27d4eb2f)
  return x ^ (x >>> 16)
}

function splitMix(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x9e3779b9) | 0
    return scramble(state, 0x7f4a7c15)
  }
}
