import { randomBytes, randomInt } from 'node:crypto'
import type { Random } from '../platform.js'

/** The machine's cryptographic random numbers. */
export class NodeRandom implements Random {
  bytes(length: number): Uint8Array {
    return randomBytes(length)
  }

  below(limit: number): number {
    return randomInt(limit)
  }
}
