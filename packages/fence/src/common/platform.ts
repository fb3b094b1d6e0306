/** What a guard uses of the machine. Simulations pass their own, so that equal seeds give equal runs. */
export interface CasPlatform {
  pause(ms: number): Promise<void>
  /** In [0, 1). */
  random(): number
  /** Returns a new unique string per call. */
  newId(): string
}

const ID_BYTES = 16

/** The real machine: Node, Bun, Deno or a browser. */
export const platform: CasPlatform = {
  pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  random: Math.random,
  newId() {
    const bytes = globalThis.crypto.getRandomValues(new Uint8Array(ID_BYTES))
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  },
}
