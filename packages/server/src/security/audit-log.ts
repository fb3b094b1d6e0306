import { closeSync, openSync, writeSync } from 'node:fs'
import { InvalidError } from '@leasehold/core'
import type { Logger } from '@leasehold/replica'

/** Who did, or was refused, what. Names are data of users; secrets are never in it. */
export interface AuditRecord {
  readonly event:
    | 'acquired'
    | 'released'
    | 'ended'
    | 'stolen'
    | 'session-opened'
    | 'session-ended'
    | 'written'
    | 'deleted'
    | 'admin'
    | 'refused'
  readonly client?: string
  readonly principal?: string
  readonly remote?: string
  readonly names?: readonly string[]
  readonly verb?: string
  readonly code?: string
  readonly hold?: string
  readonly tokens?: readonly string[]
  readonly session?: string
  readonly reason?: string
  readonly actor?: string
  readonly why?: string
  /** Of the log entry that did it. */
  readonly index?: number
}

/** Refusals in one second that are written one by one; the rest is counted, so that an attack fills no disk. */
const REFUSALS_PER_SECOND = 100

/** A file of JSON lines, or standard output (`-`). Lines are written at once and whole; a failure is logged, once. */
export class AuditLog {
  readonly #fd: number
  #failed = false
  #second = 0
  #refusals = 0

  /** @throws InvalidError when the file cannot be opened */
  constructor(
    private readonly file: string,
    private readonly log: Logger,
  ) {
    try {
      this.#fd = file === '-' ? 1 : openSync(file, 'a', 0o600)
    } catch (cause) {
      throw new InvalidError(`cannot write the audit file ${file}: ${(cause as Error).message}`, { cause })
    }
  }

  write(record: AuditRecord): void {
    if (record.event === 'refused' && !this.#mayWriteRefusal()) return
    this.#line(record)
  }

  close(): void {
    if (this.#refusals > REFUSALS_PER_SECOND) this.#line({ event: 'refused', why: this.#suppressed() })
    if (this.file !== '-') closeSync(this.#fd)
  }

  #mayWriteRefusal(): boolean {
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) {
      if (this.#refusals > REFUSALS_PER_SECOND) this.#line({ event: 'refused', why: this.#suppressed() })
      this.#second = second
      this.#refusals = 0
    }
    return ++this.#refusals <= REFUSALS_PER_SECOND
  }

  #suppressed(): string {
    return `${this.#refusals - REFUSALS_PER_SECOND} further refusals in one second`
  }

  #line(record: AuditRecord): void {
    try {
      writeSync(this.#fd, `${JSON.stringify({ time: new Date().toISOString(), ...record })}\n`)
    } catch (error) {
      if (!this.#failed) this.log.error('the audit file cannot be written', { file: this.file, error: String(error) })
      this.#failed = true
    }
  }
}
