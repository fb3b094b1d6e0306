/** What a guard uses of the machine. Handed in by simulations, which need the same run for the same seed. */
export interface CasPlatform {
  pause(ms: number): Promise<void>
  /** In [0, 1). */
  random(): number
  /** A new unique text for each call. */
  newId(): string
}

const ID_BYTES = 16

/** The machine that this runs on: Node, Bun, Deno or a browser. */
export const platform: CasPlatform = {
  pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  random: Math.random,
  newId() {
    const bytes = globalThis.crypto.getRandomValues(new Uint8Array(ID_BYTES))
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  },
}
