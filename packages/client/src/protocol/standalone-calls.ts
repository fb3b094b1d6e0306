import {
  AbortedError,
  type ClientMessage,
  CompactingSet,
  errorOf,
  type LeaseholdError,
  type ServerMessage,
} from '@leasehold/core'
import { errorOfRefusal } from './refusals.js'

/** Calls outside sessions that may be open at once. */
const CALLS_MAX = 10_000

/** A message of the service that answers one message of the client. */
export type Answer = Exclude<ServerMessage, { kind: 'welcome' | 'push' | 'pong' }>

/** A repeatable call outside sessions: sent again on every new connection until it is answered or times out. */
interface Call {
  /** Undefined: the call only waits for a connection. */
  readonly message: ((correlation: number) => ClientMessage) | undefined
  answer(message: Answer): void
  fail(error: LeaseholdError): void
}

/** What the calls need from their engine. */
export interface StandaloneCallHost {
  readonly connected: boolean
  readonly closed: boolean
  ensureConnected(): void
  /** Sends a message under a new correlation; `answer` gets what arrives for it on this connection. */
  send(message: (correlation: number) => ClientMessage, answer: (message: Answer) => void): void
  after(delayMs: number, callback: () => void, keepAlive?: boolean): () => void
  unavailable(message: string): LeaseholdError
}

/** The open calls of an engine that belong to no session: queries, reads of registers, openings of sessions. */
export class StandaloneCalls {
  readonly #host: StandaloneCallHost
  readonly #open = new CompactingSet<Call>()

  constructor(host: StandaloneCallHost) {
    this.#host = host
  }

  get size(): number {
    return this.#open.size
  }

  /**
   * Sends a repeatable request until it is answered, or only waits for a connection. `onAnswer` sees the answer before the
   * messages that follow it in the same frame.
   */
  call(
    what: string,
    timeoutMs: number,
    message: Call['message'],
    onAnswer: (answer: Answer) => void = () => {},
  ): Promise<Answer> {
    const host = this.#host
    if (host.closed) return Promise.reject(new AbortedError('the client is closed'))
    if (this.#open.size >= CALLS_MAX) return Promise.reject(errorOf('limit', `${CALLS_MAX} calls are open`))
    return new Promise((resolve, reject) => {
      const finish = () => {
        cancel()
        this.#open.delete(call)
      }
      const call: Call = {
        message,
        answer: (answer) => {
          finish()
          if (answer.kind === 'error') return reject(errorOfRefusal(answer.refused))
          onAnswer(answer)
          resolve(answer)
        },
        fail: (error) => {
          finish()
          reject(error)
        },
      }
      const timedOut = () => call.fail(host.unavailable(`no answer to ${what} within ${timeoutMs} ms`))
      const cancel = host.after(timeoutMs, timedOut, true)
      this.#open.add(call)
      host.ensureConnected()
      if (host.connected) this.#send(call)
    })
  }

  /** Sends all open calls on a new connection. */
  resendAll(): void {
    for (const call of [...this.#open]) this.#send(call)
  }

  failAll(error: LeaseholdError): void {
    for (const call of [...this.#open]) call.fail(error)
  }

  #send(call: Call): void {
    if (!call.message) return call.answer(CONNECTED)
    this.#host.send(call.message, (answer) => {
      if (this.#open.has(call)) call.answer(answer)
    })
  }
}

const CONNECTED: Answer = { kind: 'attached', correlation: 0 }
