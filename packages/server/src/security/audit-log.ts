import { closeSync, openSync, writeSync } from 'node:fs'
import { InvalidError } from '@leasehold/core'
import type { Logger } from '@leasehold/replica'

/** One line of the audit log. Names are user data; secrets are never in it. */
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
  /** Index of the log entry that had this effect. */
  readonly index?: number
}

/** Refusals per second that are written one by one. Further ones are only counted, so that an attack cannot fill the disk. */
const REFUSALS_PER_SECOND = 100

/** The audit log: a file of JSON lines, or standard output (`-`). Lines are written immediately; the first failure is logged. */
export class AuditLog {
  readonly #file: string
  readonly #log: Logger
  readonly #fd: number
  #failed = false
  #second = 0
  #refusals = 0

  /** @throws InvalidError when the file cannot be opened */
  constructor(file: string, log: Logger) {
    this.#file = file
    this.#log = log
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
    if (this.#file !== '-') closeSync(this.#fd)
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
      if (!this.#failed) this.#log.error('cannot write the audit file', { file: this.#file, error: String(error) })
      this.#failed = true
    }
  }
}
