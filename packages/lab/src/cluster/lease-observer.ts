import type { ClientMessage, ServerMessage, SessionId } from '@leasehold/core'
import type { SessionChecker } from '../checkers/session-checker.js'

interface Asked {
  readonly session: SessionId | undefined
  readonly receivedMs: number
}

/**
 * Looks on at one stream of a member: when a renewal or an opening was received, and whether it was answered. Requests
 * without an answer are few: a client asks again only on another connection.
 */
export class LeaseObserver {
  readonly #asked = new Map<number, Asked>()

  readonly #checks: SessionChecker
  readonly #nowMs: () => number

  constructor(checks: SessionChecker, nowMs: () => number) {
    this.#checks = checks
    this.#nowMs = nowMs
  }

  received(messages: readonly ClientMessage[]): void {
    for (const message of messages) {
      if (message.kind !== 'command') continue
      const { command, correlation } = message
      if (command.kind === 'renew')
        this.#asked.set(correlation, { session: command.session, receivedMs: this.#nowMs() })
      if (command.kind === 'openSession') {
        // A repeat does not lengthen the lease: it counts from the first time that the service was asked.
        const receivedMs = this.#checks.opening(command.nonce, this.#nowMs())
        this.#asked.set(correlation, { session: undefined, receivedMs })
      }
    }
  }

  sent(messages: readonly ServerMessage[]): void {
    for (const message of messages) {
      if (message.kind !== 'result') continue
      const asked = this.#asked.get(message.correlation)
      if (!asked) continue
      this.#asked.delete(message.correlation)
      const { result } = message
      if (result.kind === 'renewed' && asked.session !== undefined) {
        this.#checks.acknowledged(asked.session, undefined, asked.receivedMs)
      }
      if (result.kind === 'opened') this.#checks.acknowledged(result.session, result.ttlMs, asked.receivedMs)
    }
  }
}
