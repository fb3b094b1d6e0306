import { CodecError, LeaseholdError } from '@leasehold/core'
import { SeededRandom } from '../chaos/random.js'
import type { Target } from './targets.js'

/** No input may take longer; a thousand times what they take. */
const INPUT_MS_MAX = 2_000
/** What stays in memory after all inputs of a target. */
const GROWTH_BYTES_MAX = 200 * 1024 * 1024

export interface Fuzzed {
  readonly target: string
  readonly inputs: number
  readonly refused: number
  readonly slowestMs: number
  readonly grownBytes: number
  /** What must not be: with the number of the input that shows it. */
  readonly problem: string | undefined
}

/** Every input has a seed of its own: `seed` and the number of the input replay it. */
export function fuzz(target: Target, inputs: number, seed: number, from = 0): Fuzzed {
  const before = memory()
  let [refused, slowestMs] = [0, 0]
  let problem: string | undefined
  let n = from
  for (; n < from + inputs && problem === undefined; n++) {
    const start = performance.now()
    try {
      target.once(new SeededRandom((Math.imul(seed, 0x9e3779b1) ^ Math.imul(n + 1, 0x85ebca6b)) >>> 0))
    } catch (error) {
      if (error instanceof CodecError || error instanceof LeaseholdError) refused++
      else problem = `input ${n}: ${error instanceof Error ? error.stack : String(error)}`
    }
    const tookMs = performance.now() - start
    if (tookMs > slowestMs) slowestMs = tookMs
    if (tookMs > INPUT_MS_MAX) problem = `input ${n} took ${tookMs.toFixed(0)} ms`
  }
  const grownBytes = memory() - before
  if (grownBytes > GROWTH_BYTES_MAX) problem ??= `${grownBytes} bytes stayed in memory`
  return { target: target.name, inputs: n - from, refused, slowestMs, grownBytes, problem }
}

function memory(): number {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
