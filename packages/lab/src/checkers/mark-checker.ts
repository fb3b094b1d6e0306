import type { Violations } from './violation.js'

/** The first line of what a guard keeps has the mark of its object as 19 digits. */
const MARK = /"mark":"([0-9]{19})"/
const WRITE = /"write":"([^"]*)"/
const HEAD_BYTES = 16_384

/**
 * Objects behind a guard, from outside: their marks never fall, and a holder that has opened one is safe from writes of earlier
 * holds. Reads the bytes in the store itself, and shares no code with the guard.
 */
export class MarkChecker {
  readonly #marks = new Map<string, bigint>()
  readonly #writes = new Map<string, string>()
  readonly #opened = new Map<string, { readonly token: bigint; readonly client: string }>()

  readonly #violations: Violations

  constructor(violations: Violations) {
    this.#violations = violations
  }

  /** The guard has told a client that the object is open. */
  opens(key: string, token: bigint, client: string): void {
    const top = this.#opened.get(key)
    if (!top || token > top.token) this.#opened.set(key, { token, client })
  }

  /** The store has accepted these bytes. */
  stored(key: string, bytes: Uint8Array): void {
    const head = new TextDecoder().decode(bytes.subarray(0, HEAD_BYTES)).split('\n')[0] ?? ''
    const mark = BigInt(MARK.exec(head)?.[1] ?? '0')
    const write = WRITE.exec(head)?.[1] ?? ''
    const before = this.#marks.get(key) ?? 0n
    if (mark < before) this.#violations.report('I3', `the mark of ${key} falls from ${before} to ${mark}`)
    this.#marks.set(key, mark)
    if (write === this.#writes.get(key)) return
    this.#writes.set(key, write)
    const top = this.#opened.get(key)
    if (!top || mark >= top.token) return
    this.#violations.report(
      'I3',
      `${key} takes a write with token ${mark} after ${top.client} has opened it with ${top.token}`,
    )
  }
}
