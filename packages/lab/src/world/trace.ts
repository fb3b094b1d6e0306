/**
 * The running digest over everything that happens: equal for equal seeds, on every engine. Two independent 32-bit
 * lanes; good enough to notice any difference, not meant against an attacker that looks for collisions.
 */
export class TraceHash {
  #a = 0x243f6a88
  #b = 0x13198a2e
  #count = 0

  /** Events that went in. */
  get count(): number {
    return this.#count
  }

  /** One event: when, to whom, what (numbers below 2^53; 32 bits count, of the time all). */
  event(atUs: number, who: number, kind: number, detail: number): void {
    this.#count++
    this.#word(atUs | 0)
    this.#word((atUs / 0x100000000) | 0)
    this.#word(who)
    this.#word(kind)
    this.#word(detail)
  }

  /** 16 hex digits. */
  get digest(): string {
    return hex(finish(this.#a ^ this.#count)) + hex(finish(this.#b + this.#count))
  }

  #word(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x01000193)
    this.#a ^= this.#a >>> 15
    this.#b = Math.imul((this.#b << 7) | (this.#b >>> 25), 0x9e3779b1) ^ value
  }
}

/** A 32-bit digest of bytes, for the trace. */
export function digestOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5 ^ bytes.length
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193)
  return hash
}

function finish(value: number): number {
  let x = value
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}

function hex(value: number): string {
  return value.toString(16).padStart(8, '0')
}
