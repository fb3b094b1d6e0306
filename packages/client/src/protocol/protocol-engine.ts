import {
  AbortedError,
  type ClientMessage,
  type Command,
  type Cursor,
  EpochChangedError,
  type Event,
  type Hex128,
  type LeaseholdError,
  type Millis,
  NotHolderError,
  type Query,
  type QueryResult,
  type Result,
  type ServerMessage,
  SessionEndedError,
  type SessionId,
  splitToken,
  UnavailableError,
  type Welcome,
} from '@leasehold/core'
import { bounded } from '../async/bounded-wait.js'
import { Emitter } from '../async/emitter.js'
import { after } from '../async/timers.js'
import { ALL_CAPABILITIES } from '../capabilities.js'
import { sessionEndedError } from '../end-reasons.js'
import type { Capabilities, Engine, EngineRegister, EngineSession, EngineStatus } from '../engine.js'
import { type ClientPlatform, defaultPlatform } from '../platform.js'
import type { Connector } from './channel.js'
import { Correlations } from './correlations.js'
import { Link } from './link.js'
import { ProtocolSession } from './protocol-session.js'
import { errorOfRefusal, isRetryableRefusal } from './refusals.js'
import { type Answer, StandaloneCalls } from './standalone-calls.js'
import { WATCH_CORRELATION_MIN, WatchRegistry } from './watch-registry.js'
import type { Awaiting, SessionIdentity, Wire } from './wire.js'

export interface ProtocolEngineOptions {
  /** For messages. Default: the URLs. */
  readonly name?: string
  readonly urls: readonly string[]
  readonly connector: Connector
  readonly apiKey?: string
  readonly clientName?: string
  /** How long one attempt to connect may take. Default 2 s. */
  readonly attemptTimeoutMs?: number
  readonly platform?: ClientPlatform
  /** Frees what the connector uses, after the engine has closed. */
  readonly onClose?: () => Promise<void>
}

const ATTEMPT_TIMEOUT_DEFAULT_MS = 2_000
/** How long one query for the present position of the log may take. */
const POSITION_TIMEOUT_MS = 5_000

/**
 * The engine that speaks the stream protocol: over WebSockets to a server or cluster, or by callbacks to a member in this
 * process. One connection carries everything. After a reconnect the engine attaches its sessions again and resends what was
 * not answered.
 */
export class ProtocolEngine implements Engine, Wire {
  readonly name: string
  readonly capabilities: Capabilities = ALL_CAPABILITIES
  readonly #platform: ClientPlatform
  readonly #link: Link
  readonly #onClose: (() => Promise<void>) | undefined
  readonly #listeners: Emitter<EngineStatus>
  readonly #sessions = new Map<SessionId, ProtocolSession>()
  readonly #calls: StandaloneCalls
  readonly #watches: WatchRegistry
  /** The recipients of answers on the present connection. */
  readonly #awaited = new Correlations<Awaiting | ((message: Answer) => void)>()
  #cluster = ''

  constructor(options: ProtocolEngineOptions) {
    const { urls, connector, apiKey = '', clientName = '' } = options
    this.name = options.name ?? urls.join(',')
    this.#platform = options.platform ?? defaultPlatform
    this.#onClose = options.onClose
    this.#listeners = new Emitter(this.#platform)
    const attemptTimeoutMs = options.attemptTimeoutMs ?? ATTEMPT_TIMEOUT_DEFAULT_MS
    const link = new Link(
      { platform: this.#platform, connector, urls, apiKey, client: clientName, attemptTimeoutMs },
      {
        up: (welcome) => this.#up(welcome),
        down: () => this.#down(),
        message: (message) => this.#message(message),
        refused: (error) => this.#refused(error),
        status: (status) => this.#listeners.emit(status),
        awaited: () => this.#awaited.size,
        needed: () => this.#calls.size + this.#sessions.size + this.#watches.size > 0,
        // A reader of a watch waits for its next event.
        hasWaiters: () =>
          this.#calls.size + this.#watches.size > 0 ||
          [...this.#sessions.values()].some((session) => session.openRequests > 0),
      },
    )
    this.#link = link
    this.#watches = new WatchRegistry(link)
    this.#calls = new StandaloneCalls({
      get connected() {
        return link.connected
      },
      get closed() {
        return link.status.state === 'closed'
      },
      ensureConnected: () => link.ensureConnected(),
      send: (message, answer) => this.#send(message, answer),
      after: (delayMs, callback, keepAlive) => this.after(delayMs, callback, keepAlive),
      unavailable: (message) => this.unavailable(message),
    })
  }

  get status(): EngineStatus {
    return this.#link.status
  }

  onStatus(listener: (status: EngineStatus) => void): () => void {
    return this.#listeners.add(listener)
  }

  async connect(timeoutMs: number): Promise<void> {
    if (!this.#link.connected) await this.#calls.call('connect', timeoutMs, undefined)
  }

  async openSession(options: { ttlMs: number; client: string; timeoutMs: number }): Promise<EngineSession> {
    const command: Command = {
      kind: 'openSession',
      nonce: hex(this.#platform.randomBytes(16)),
      // A placeholder: the leader mints the secret.
      secret: '0'.repeat(32) as Hex128,
      ttlMs: options.ttlMs as Millis,
      client: options.client,
      local: false,
    }
    let opened: ProtocolSession | undefined
    const result = await this.call('openSession', options.timeoutMs, command, undefined, (answer) => {
      if (answer.kind !== 'opened') return
      const { session, secret, ttlMs } = answer
      opened = new ProtocolSession(this, { session, secret, ttlMs, epoch: this.#link.epoch })
      // Registered at once: pushes in the same frame must find it.
      this.#sessions.set(session, opened)
    })
    if (opened) return opened
    throw new UnavailableError(`the service answered openSession with ${result.kind}`)
  }

  async query(query: Query, options: { stale: boolean; timeoutMs: number }): Promise<QueryResult & { epoch: number }> {
    const message = await this.#calls.call('query', options.timeoutMs, (correlation) => {
      return { kind: 'query', correlation, query, stale: options.stale }
    })
    if (message.kind === 'queryAnswer') return { ...message.answer, epoch: message.answer.at.epoch }
    throw unexpectedAnswer('query', message)
  }

  async steal(hold: bigint, options: { actor: string; reason: string; timeoutMs: number }): Promise<void> {
    const { actor, reason, timeoutMs } = options
    const sends = { count: 0 }
    try {
      await this.#withSerial(hold, timeoutMs, (serial) => ({ kind: 'steal', hold: serial, actor, reason }), sends)
    } catch (error) {
      // After a lost answer the hold is gone because the first sending has stolen it.
      if (!(error instanceof NotHolderError && sends.count > 1)) throw error
    }
  }

  async endSession(session: bigint, options: { reason: string; timeoutMs: number }): Promise<void> {
    const { reason, timeoutMs } = options
    await this.#withSerial(session, timeoutMs, (serial) => {
      return { kind: 'closeSession', session: serial, by: 'operator', reason }
    })
  }

  async getRegister(key: string, options: { stale: boolean; timeoutMs: number }): Promise<EngineRegister | undefined> {
    const message = await this.#calls.call('get', options.timeoutMs, (correlation) => {
      return { kind: 'get', correlation, key, stale: options.stale }
    })
    if (message.kind === 'getAnswer') return message.register
    throw unexpectedAnswer('get', message)
  }

  async *watch(options: {
    prefix: string
    from?: Cursor
    signal: AbortSignal
  }): AsyncGenerator<{ cursor: Cursor; event: Event }, void, void> {
    const { prefix, signal } = options
    if (signal.aborted) return
    // A cursor from the start, so that a reconnect before the first event loses nothing.
    const from = options.from ?? (await this.#position(signal))
    if (from === undefined || signal.aborted) return
    yield* this.#watches.items(prefix, from, signal)
  }

  async close(): Promise<void> {
    if (this.#link.status.state === 'closed') return
    this.#calls.failAll(new AbortedError('the client is closed'))
    this.#watches.stopAll()
    for (const session of [...this.#sessions.values()]) session.end(new SessionEndedError('the client is closed'))
    this.#link.close()
    this.#listeners.clear()
    await this.#onClose?.()
  }

  // --- Wire ---

  get connected(): boolean {
    return this.#link.connected
  }

  get lastError(): LeaseholdError | undefined {
    return this.#link.lastError
  }

  ensureConnected(): void {
    this.#link.ensureConnected()
  }

  now(): number {
    return this.#platform.monotonicMs()
  }

  after(delayMs: number, callback: () => void, keepAlive = false): () => void {
    return after(this.#platform, delayMs, callback, keepAlive)
  }

  probe(error: LeaseholdError, patienceMs: number): void {
    this.#link.probe(error, patienceMs)
  }

  forget(session: { readonly identity: SessionIdentity }): void {
    if (this.#sessions.get(session.identity.session) === session) this.#sessions.delete(session.identity.session)
  }

  unavailable(message: string): LeaseholdError {
    const cause = this.#link.outage
    const text = cause ? `${this.name}: ${message} (${cause.message})` : `${this.name}: ${message}`
    const code = cause?.code === 'no-quorum' ? 'no-quorum' : 'unreachable'
    return new UnavailableError(text, { code, cause, hint: 'says nothing about the holder of a lock' })
  }

  command(command: Command, awaiting: Awaiting): void {
    this.#link.send({ kind: 'command', correlation: this.#awaited.add(awaiting), command })
  }

  async call(
    what: string,
    timeoutMs: number,
    command: Command,
    sends = { count: 0 },
    onResult: (result: Result) => void = () => {},
  ): Promise<Result> {
    const message = await this.#calls.call(
      what,
      timeoutMs,
      (correlation) => {
        sends.count++
        return { kind: 'command', correlation, command }
      },
      (answer) => answer.kind === 'result' && onResult(answer.result),
    )
    return resultOf(what, message)
  }

  #send(message: (correlation: number) => ClientMessage, answer: (message: Answer) => void): void {
    this.#link.send(message(this.#awaited.add(answer)))
  }

  /** Sends a command about `id`, if the id is of the service's present epoch. */
  async #withSerial(
    id: bigint,
    timeoutMs: number,
    command: (serial: SessionId) => Command,
    sends = { count: 0 },
  ): Promise<void> {
    const { epoch, serial } = splitToken(id)
    await this.connect(timeoutMs)
    const now = this.#link.epoch
    if (epoch !== now) throw new EpochChangedError(`${id} is of epoch ${epoch}, the service of ${now}`)
    await this.call('command', timeoutMs, command(serial), sends)
  }

  /** The present end of the log. Waits for the service as long as it takes; undefined: `signal` aborted. */
  async #position(signal: AbortSignal): Promise<Cursor | undefined> {
    for (;;) {
      if (signal.aborted) return undefined
      try {
        const answer = this.query({ limit: 1 }, { stale: false, timeoutMs: POSITION_TIMEOUT_MS })
        return (await bounded(this.#platform, answer, { what: 'watch', signal })).at
      } catch (error) {
        if (signal.aborted) return undefined
        if (!(error instanceof UnavailableError)) throw error
      }
    }
  }

  // --- Events of the connection ---

  #up(welcome: Welcome): void {
    const { cluster, epoch } = welcome
    const restored = this.#cluster !== '' && this.#cluster !== cluster
    this.#cluster = cluster
    for (const session of [...this.#sessions.values()]) {
      if (restored || session.identity.epoch !== welcome.epoch) {
        const error = new EpochChangedError(`the service was restored: epoch ${epoch}, cluster ${cluster}`)
        session.endedByService('epoch-changed', error)
      } else this.#attach(session)
    }
    this.#watches.connected(welcome, restored)
    this.#calls.resendAll()
  }

  #attach(session: ProtocolSession): void {
    const { session: id, secret } = session.identity
    this.#send(
      (correlation) => ({ kind: 'attach', correlation, session: id, secret }),
      (message) => {
        if (message.kind === 'attached') return session.attach()
        if (message.kind !== 'error') return
        const error = errorOfRefusal(message.refused)
        if (error instanceof SessionEndedError) session.endedByService('expired', error)
        // Anything else is retried on the next connection, until the deadline of the session.
        else this.#link.drop(error, message.leaderUrl)
      },
    )
  }

  #down(): void {
    this.#awaited.clear()
    this.#watches.disconnected()
    for (const session of this.#sessions.values()) session.detach()
  }

  /** The service rejects this client. Sessions live until their deadlines: an operator may correct the mistake. */
  #refused(error: LeaseholdError): void {
    this.#calls.failAll(error)
    this.#watches.failAll(error)
  }

  #message(message: ServerMessage): void {
    switch (message.kind) {
      case 'push': {
        const { session: id, change, ended } = message.push
        const session = this.#sessions.get(id)
        if (change) session?.pushed(change)
        if (ended) session?.endedByService(ended, sessionEndedError(ended))
        return
      }
      case 'result':
        return this.#answered(message, message.result)
      case 'error':
        return this.#answered(message, message.refused, message.leaderUrl)
      case 'events':
        return this.#watches.received(message)
      case 'attached':
      case 'queryAnswer':
      case 'getAnswer':
        return this.#answered(message)
      // The link has handled them.
      case 'welcome':
      case 'pong':
        return
    }
  }

  #answered(message: Answer, result?: Result, leaderUrl = ''): void {
    if (result?.kind === 'refused' && (isRetryableRefusal(result) || leaderUrl !== '')) {
      // This member cannot serve it, or does not know its outcome: everything open is sent to the next member.
      return this.#link.drop(errorOfRefusal(result), leaderUrl)
    }
    this.#link.succeeded()
    if (message.correlation >= WATCH_CORRELATION_MIN) {
      if (message.kind === 'error') this.#watches.refused(message.correlation, errorOfRefusal(message.refused))
      return
    }
    const awaiting = this.#awaited.take(message.correlation)
    if (typeof awaiting === 'function') awaiting(message)
    else if (result) awaiting?.answered(result)
  }
}

/** The result in an answer. @throws the typed error of a refusal */
function resultOf(what: string, message: Answer): Result {
  if (message.kind !== 'result') throw unexpectedAnswer(what, message)
  if (message.result.kind === 'refused') throw errorOfRefusal(message.result)
  return message.result
}

function unexpectedAnswer(what: string, message: Answer): LeaseholdError {
  if (message.kind === 'error') return errorOfRefusal(message.refused)
  return new UnavailableError(`the service answered ${what} with ${message.kind}`, {
    hint: 'update the client or the service, whichever is older',
  })
}

function hex(bytes: Uint8Array): Hex128 {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('') as Hex128
}
