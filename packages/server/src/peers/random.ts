import { randomBytes, randomInt } from 'node:crypto'

/** Cryptographic random numbers, for node numbers and cluster ids. */
export const RANDOM = {
  bytes: (length: number) => new Uint8Array(randomBytes(length)),
  below: (limit: number) => randomInt(limit),
}
