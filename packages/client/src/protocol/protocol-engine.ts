import {
  AbortedError,
  type Command,
  type Cursor,
  EpochChangedError,
  type Event,
  errorOf,
  CompactingSet,
  type Hex128,
  LeaseholdError,
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
  type ClientMessage,
} from '@leasehold/core'
import { ALL_CAPABILITIES } from '../capabilities.js'
import type { Capabilities, Engine, EngineRegister, EngineSession, EngineStatus } from '../engine.js'
import { Emitter } from '../async/emitter.js'
import { type ClientPlatform, defaultPlatform } from '../platform.js'
import { bounded } from '../async/bounded-wait.js'
import { after } from '../async/timers.js'
import type { Connector } from './channel.js'
import { Correlations } from './correlations.js'
import { Link } from './link.js'
import { type Awaiting, errorOfRefusal, isRetryableRefusal } from './deduplicated-request.js'
import { ProtocolSession } from './protocol-session.js'
import { StreamWatch } from './stream-watch.js'
import type { Wire } from './wire.js'

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
  /** Frees what is under the connector, when the engine has been closed. */
  readonly onClose?: () => Promise<void>
}

const ATTEMPT_TIMEOUT_DEFAULT_MS = 2_000
/** Watches have several answers each: their numbers are above those of everything else, and are not used again. */
const WATCH_CORRELATION_MIN = 2 ** 31
const CORRELATION_MAX = 2 ** 32 - 2
/** Calls outside sessions that may be open at once. */
const CALLS_MAX = 10_000

type Answer = Exclude<ServerMessage, { kind: 'welcome' | 'push' | 'pong' }>

/** A repeatable call outside sessions: sent again on every new connection until it is answered or given up. */
interface Call {
  /** Undefined: waits for a connection and asks nothing. */
  readonly message: ((correlation: number) => ClientMessage) | undefined
  answer(message: Answer): void
  fail(error: LeaseholdError): void
}

/**
 * The engine that speaks the stream protocol: over WebSockets to a server or cluster, or by callbacks to a member in this
 * process. One connection carries everything; it is made anew when it breaks, sessions are attached again, and what was
 * not answered is sent again.
 */
export class ProtocolEngine implements Engine, Wire {
  readonly name: string
  readonly capabilities: Capabilities = ALL_CAPABILITIES
  readonly #platform: ClientPlatform
  readonly #link: Link
  readonly #onClose: (() => Promise<void>) | undefined
  readonly #listeners: Emitter<EngineStatus>
  readonly #sessions = new Map<SessionId, ProtocolSession>()
  readonly #calls = new CompactingSet<Call>()
  readonly #watches = new Set<StreamWatch>()
  /** What answers on the present connection belong to. */
  readonly #awaited = new Correlations<Awaiting | ((message: Answer) => void)>()
  readonly #watched = new Map<number, StreamWatch>()
  readonly #watchCorrelations = new Map<StreamWatch, number>()
  #watchCorrelation = WATCH_CORRELATION_MIN
  #cluster = ''

  constructor(options: ProtocolEngineOptions) {
    const { urls, connector, apiKey = '', clientName = '' } = options
    this.name = options.name ?? urls.join(',')
    this.#platform = options.platform ?? defaultPlatform
    this.#onClose = options.onClose
    this.#listeners = new Emitter(this.#platform)
    const attemptTimeoutMs = options.attemptTimeoutMs ?? ATTEMPT_TIMEOUT_DEFAULT_MS
    this.#link = new Link(
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
  }

  get status(): EngineStatus {
    return this.#link.status
  }

  onStatus(listener: (status: EngineStatus) => void): () => void {
    return this.#listeners.add(listener)
  }

  async connect(timeoutMs: number): Promise<void> {
    if (!this.#link.connected) await this.#ask('connect', timeoutMs, undefined)
  }

  async openSession(options: { ttlMs: number; client: string; timeoutMs: number }): Promise<EngineSession> {
    const command: Command = {
      kind: 'openSession',
      nonce: hex(this.#platform.randomBytes(16)),
      // The leader mints it; the field is filled in there.
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
      // Registered within the answer: pushes that follow in the same frame must find it.
      this.#sessions.set(session, opened)
    })
    if (opened) return opened
    throw new UnavailableError(`the service has answered openSession with ${result.kind}`)
  }

  async query(query: Query, options: { stale: boolean; timeoutMs: number }): Promise<QueryResult & { epoch: number }> {
    const message = await this.#ask('query', options.timeoutMs, (correlation) => {
      return { kind: 'query', correlation, query, stale: options.stale }
    })
    if (message.kind === 'queryAnswer') return { ...message.answer, epoch: message.answer.at.epoch }
    throw unexpected('query', message)
  }

  async steal(hold: bigint, options: { actor: string; reason: string; timeoutMs: number }): Promise<void> {
    const { actor, reason, timeoutMs } = options
    const sends = { count: 0 }
    try {
      await this.#withSerial(hold, timeoutMs, (serial) => ({ kind: 'steal', hold: serial, actor, reason }), sends)
    } catch (error) {
      // The answer to the first sending was lost. That the hold is gone now is what was hasWaiters.
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
    const message = await this.#ask('get', options.timeoutMs, (correlation) => {
      return { kind: 'get', correlation, key, stale: options.stale }
    })
    if (message.kind === 'getAnswer') return message.register
    throw unexpected('get', message)
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
    const watch = new StreamWatch(prefix, from)
    const stop = () => watch.stop()
    signal.addEventListener('abort', stop)
    this.#watches.add(watch)
    this.#link.ensureConnected()
    if (this.#link.connected) this.#sendWatch(watch)
    try {
      yield* watch.items()
    } finally {
      signal.removeEventListener('abort', stop)
      this.#watches.delete(watch)
      this.#unwatch(watch)
    }
  }

  async close(): Promise<void> {
    if (this.#link.status.state === 'closed') return
    const error = new AbortedError('the client is closed')
    for (const call of [...this.#calls]) call.fail(error)
    for (const watch of this.#watches) watch.stop()
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

  forget(session: ProtocolSession): void {
    if (this.#sessions.get(session.identity.session) === session) this.#sessions.delete(session.identity.session)
  }

  unavailable(message: string): LeaseholdError {
    const cause = this.#link.outage
    const text = cause ? `${this.name}: ${message} (${cause.message})` : `${this.name}: ${message}`
    const code = cause?.code === 'no-quorum' ? 'no-quorum' : 'unreachable'
    return new UnavailableError(text, { code, cause, hint: 'says nothing about who holds a lock' })
  }

  command(command: Command, awaiting: Awaiting): void {
    this.#link.send({ kind: 'command', correlation: this.#awaited.add(awaiting), command })
  }

  async call(
    what: string,
    timeoutMs: number,
    command: Command,
    sends = { count: 0 },
    atOnce: (result: Result) => void = () => {},
  ): Promise<Result> {
    const message = await this.#ask(
      what,
      timeoutMs,
      (correlation) => {
        sends.count++
        return { kind: 'command', correlation, command }
      },
      (answer) => answer.kind === 'result' && atOnce(answer.result),
    )
    return resultOf(what, message)
  }

  // --- Calls ---

  /** Sends a repeatable question until it is answered. `atOnce` sees the answer before the messages that follow it. */
  #ask(
    what: string,
    timeoutMs: number,
    message: Call['message'],
    atOnce: (answer: Answer) => void = () => {},
  ): Promise<Answer> {
    if (this.#link.status.state === 'closed') return Promise.reject(new AbortedError('the client is closed'))
    if (this.#calls.size >= CALLS_MAX) return Promise.reject(errorOf('limit', `${CALLS_MAX} calls are open`))
    return new Promise((resolve, reject) => {
      const finish = () => {
        cancel()
        this.#calls.delete(call)
      }
      const call: Call = {
        message,
        answer: (answer) => {
          finish()
          if (answer.kind === 'error') return reject(errorOfRefusal(answer.refused))
          atOnce(answer)
          resolve(answer)
        },
        fail: (error) => {
          finish()
          reject(error)
        },
      }
      const expired = () => call.fail(this.unavailable(`no answer to ${what} within ${timeoutMs} ms`))
      const cancel = this.after(timeoutMs, expired, true)
      this.#calls.add(call)
      this.#link.ensureConnected()
      if (this.#link.connected) this.#sendCall(call)
    })
  }

  #sendCall(call: Call): void {
    if (!call.message) return call.answer(CONNECTED)
    this.#send(call.message, (answer) => {
      if (this.#calls.has(call)) call.answer(answer)
    })
  }

  #send(message: (correlation: number) => ClientMessage, answer: (message: Answer) => void): void {
    this.#link.send(message(this.#awaited.add(answer)))
  }

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
    const request = command(serial)
    const message = await this.#ask('command', timeoutMs, (correlation) => {
      sends.count++
      return { kind: 'command', correlation, command: request }
    })
    resultOf('command', message)
  }

  // --- Watches ---

  async #position(signal: AbortSignal): Promise<Cursor | undefined> {
    for (;;) {
      if (signal.aborted) return undefined
      try {
        const answer = this.query({ limit: 1 }, { stale: false, timeoutMs: POSITION_TIMEOUT_MS })
        return (await bounded(this.#platform, answer, { what: 'watch', signal })).at
      } catch (error) {
        if (signal.aborted) return undefined
        if (!(error instanceof UnavailableError)) throw error
        // A watch has no end of its own: it waits for the service.
      }
    }
  }

  #sendWatch(watch: StreamWatch): void {
    if (this.#watchCorrelation > CORRELATION_MAX) this.#watchCorrelation = WATCH_CORRELATION_MIN
    const correlation = this.#watchCorrelation++
    this.#watched.set(correlation, watch)
    this.#watchCorrelations.set(watch, correlation)
    this.#link.send(watch.message(correlation))
  }

  #unwatch(watch: StreamWatch): void {
    const correlation = this.#watchCorrelations.get(watch)
    this.#watchCorrelations.delete(watch)
    if (correlation === undefined || !this.#watched.delete(correlation)) return
    this.#link.send({ kind: 'unwatch', correlation })
  }

  // --- The connection ---

  #up(welcome: Welcome): void {
    const restored = this.#cluster !== '' && this.#cluster !== welcome.cluster
    this.#cluster = welcome.cluster
    for (const session of [...this.#sessions.values()]) {
      if (restored || session.identity.epoch !== welcome.epoch) {
        const error = new EpochChangedError(
          `the service was restored: epoch ${welcome.epoch}, cluster ${welcome.cluster}`,
        )
        session.endedByService('epoch-changed', error)
      } else this.#attach(session)
    }
    for (const watch of this.#watches) {
      if (restored) watch.fail(new EpochChangedError(`this is another service now: cluster ${welcome.cluster}`))
      else watch.connected(welcome.epoch)
      this.#sendWatch(watch)
    }
    for (const call of [...this.#calls]) this.#sendCall(call)
  }

  #attach(session: ProtocolSession): void {
    const { session: id, secret } = session.identity
    this.#send(
      (correlation) => ({ kind: 'attach', correlation, session: id, secret }),
      (message) => {
        if (message.kind === 'attached') return session.attached()
        if (message.kind !== 'error') return
        const error = errorOfRefusal(message.refused)
        if (error instanceof SessionEndedError) session.endedByService('expired', error)
        // Anything else is tried again with the next connection; the deadline goes on meanwhile.
        else this.#link.leave(error, message.leaderUrl)
      },
    )
  }

  #down(): void {
    this.#awaited.clear()
    this.#watched.clear()
    this.#watchCorrelations.clear()
    for (const session of this.#sessions.values()) session.detached()
  }

  /** The service does not want us. Sessions go on until their deadlines: the refusal may be a mistake that is put right. */
  #refused(error: LeaseholdError): void {
    for (const call of [...this.#calls]) call.fail(error)
    for (const watch of this.#watches) watch.fail(error)
  }

  #message(message: ServerMessage): void {
    switch (message.kind) {
      case 'push': {
        const { session: id, change, ended } = message.push
        const session = this.#sessions.get(id)
        if (change) session?.pushed(change)
        if (ended) session?.endedByService(ended, new SessionEndedError(`the service has ended the session (${ended})`))
        return
      }
      case 'result':
        return this.#answered(message, message.result)
      case 'error':
        return this.#answered(message, message.refused, message.leaderUrl)
      case 'events':
        this.#watched.get(message.correlation)?.received(message)
        return
      case 'attached':
      case 'queryAnswer':
      case 'getAnswer':
        return this.#answered(message)
      // The link has dealt with them.
      case 'welcome':
      case 'pong':
        return
    }
  }

  #answered(message: Answer, result?: Result, leaderUrl = ''): void {
    if (result?.kind === 'refused' && (isRetryableRefusal(result) || leaderUrl !== '')) {
      // This member cannot do it, or does not know whether it was done: everything open goes to the next one.
      return this.#link.leave(errorOfRefusal(result), leaderUrl)
    }
    this.#link.works()
    if (message.correlation >= WATCH_CORRELATION_MIN) {
      if (message.kind === 'error') this.#watchEnds(message.correlation, errorOfRefusal(message.refused))
      return
    }
    const awaiting = this.#awaited.take(message.correlation)
    if (typeof awaiting === 'function') awaiting(message)
    else if (result) awaiting?.answered(result)
  }

  #watchEnds(correlation: number, error: LeaseholdError): void {
    const watch = this.#watched.get(correlation)
    if (!watch) return
    this.#watched.delete(correlation)
    watch.fail(error)
  }
}

const CONNECTED: Answer = { kind: 'attached', correlation: 0 }

/** How long one question for the present position of the log may take. */
const POSITION_TIMEOUT_MS = 5_000

/** The result in an answer. Throws the typed error of a refusal. */
function resultOf(what: string, message: Answer): Result {
  if (message.kind !== 'result') throw unexpected(what, message)
  if (message.result.kind === 'refused') throw errorOfRefusal(message.result)
  return message.result
}

function unexpected(what: string, message: Answer): LeaseholdError {
  if (message.kind === 'error') return errorOfRefusal(message.refused)
  return new UnavailableError(`the service has answered ${what} with ${message.kind}`, {
    hint: 'update the older side',
  })
}

function hex(bytes: Uint8Array): Hex128 {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('') as Hex128
}
