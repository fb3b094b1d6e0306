import {
  type Ack,
  type Change,
  type Command,
  CompactingSet,
  type LeaseholdError,
  type Result,
  SessionEndedError,
} from '@leasehold/core'
import { ChangeLog } from './change-log.js'
import { errorOfRefusal, unexpectedResult } from './refusals.js'
import type { SessionIdentity, Wire } from './wire.js'

/** A service that is alive answers a ping within this; the caller may have less time left. */
const PROBE_MS = 500

/** What the renewals of a session need from it. */
export interface RenewalHost {
  readonly wire: Wire
  readonly identity: SessionIdentity
  /** Whether the service has bound the session to the present connection. */
  readonly attached: boolean
  readonly ended: LeaseholdError | undefined
  /** What a renewal acknowledges; undefined: nothing new. */
  takeUnreportedAck(): Ack | undefined
  /** The command that carried `ack` may not have been applied. */
  restoreAck(ack: Ack): void
  apply(change: Change): void
  expired(error: LeaseholdError): void
}

/** One attempt to renew a session, until its answer or its end. */
interface Renewal {
  readonly resolve: () => void
  readonly reject: (error: LeaseholdError) => void
  readonly cancel: () => void
}

/** The renewals of a session. Their answers carry the changes whose pushes were lost with a connection. */
export class SessionRenewals {
  readonly #host: RenewalHost
  readonly #changes = new ChangeLog()
  readonly #open = new CompactingSet<Renewal>()

  constructor(host: RenewalHost) {
    this.#host = host
  }

  /** Renewals without an answer. */
  get size(): number {
    return this.#open.size
  }

  /** One attempt. Resolves when the service has acknowledged this attempt. */
  renew(timeoutMs: number): Promise<void> {
    const { wire } = this.#host
    if (this.#open.size > 0) wire.probe(wire.unavailable('a renewal has no answer'), Math.min(PROBE_MS, timeoutMs / 2))
    return new Promise((resolve, reject) => {
      const renewal: Renewal = {
        resolve: () => this.#close(renewal, resolve),
        reject: (error) => this.#close(renewal, () => reject(error)),
        cancel: wire.after(timeoutMs, () => {
          renewal.reject(wire.unavailable(`a renewal was not acknowledged within ${Math.round(timeoutMs)} ms`))
        }),
      }
      this.#open.add(renewal)
      this.#send(renewal)
    })
  }

  /** Whether a pushed change is new. */
  pushed(change: Change): boolean {
    return this.#changes.pushed(change)
  }

  /** The connection is gone, and perhaps pushes with it. */
  detached(): void {
    this.#changes.reattached()
  }

  /** Sends the open renewals on a new connection, or else one that only fetches what was pushed meanwhile. */
  resendAll(): void {
    if (this.#open.size === 0) this.#sendCommand(() => {})
    for (const renewal of [...this.#open]) this.#send(renewal)
  }

  end(error: LeaseholdError): void {
    for (const renewal of [...this.#open]) renewal.reject(error)
  }

  #send(renewal: Renewal): void {
    const { wire } = this.#host
    wire.ensureConnected()
    if (!this.#host.attached || !wire.connected) return
    this.#sendCommand((error) => (error ? renewal.reject(error) : renewal.resolve()))
  }

  #sendCommand(done: (error: LeaseholdError | undefined) => void): void {
    const host = this.#host
    const ack = host.takeUnreportedAck()
    const { seen } = this.#changes
    const command: Command = {
      kind: 'renew',
      session: host.identity.session,
      ...(seen > 0 ? { seen } : {}),
      ...(ack === undefined ? {} : { ack }),
    }
    const answered = (result: Result): void => {
      if (host.ended) return
      if (result.kind === 'renewed') {
        const fresh = this.#changes.renewed(result.changes)
        done(undefined)
        for (const change of fresh) host.apply(change)
        return
      }
      if (ack) host.restoreAck(ack)
      const error = result.kind === 'refused' ? errorOfRefusal(result) : unexpectedResult('renew', result)
      if (error instanceof SessionEndedError) host.expired(error)
      done(error)
    }
    host.wire.command(command, { answered })
  }

  #close(renewal: Renewal, then: () => void): void {
    if (!this.#open.delete(renewal)) return
    renewal.cancel()
    then()
  }
}
