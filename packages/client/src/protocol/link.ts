import {
  AccessError,
  type ClientMessage,
  errorOf,
  EpochChangedError,
  InvalidError,
  type LeaseholdError,
  type ServerMessage,
  STREAM_VERSION,
  UnavailableError,
  type Welcome,
} from '@leasehold/core'
import type { EngineStatus } from '../engine.js'
import type { ClientPlatform } from '../platform.js'
import { after } from '../async/timers.js'
import { backoffMs } from './backoff.js'
import type { Channel, Connector } from './channel.js'
import { EarlyFlush } from './early-flush.js'

export interface LinkOptions {
  readonly platform: ClientPlatform
  readonly connector: Connector
  readonly urls: readonly string[]
  readonly apiKey: string
  readonly client: string
  /** For one attempt: until the welcome. */
  readonly attemptTimeoutMs: number
}

export interface LinkEvents {
  /** Connected to a member that takes commands. */
  up(welcome: Welcome): void
  /** The connection is gone; what was sent on it may be lost. */
  down(): void
  message(message: ServerMessage): void
  /** The service has refused the credentials or the version: trying again does not help. */
  refused(error: LeaseholdError): void
  status(status: EngineStatus): void
  /** Whether a caller waits for a connection: then the next attempt keeps the process alive. */
  hasWaiters(): boolean
  /** Whether anything needs a connection. */
  needed(): boolean
  /** Messages without an answer so far. */
  awaited(): number
}

/** Known URLs: the given ones and those that members have announced. */
const URLS_MAX = 32
/** How long an attempt may take in the first round over several members. */
const ATTEMPT_FIRST_MS = 600
/** Redirects in a row that are followed at once; further ones are delayed like failed attempts. */
const REDIRECTS_MAX = 3
/** Attempts in a row while nothing needs the link: then it waits until it is needed. */
const UNNEEDED_ATTEMPTS_MAX = 8
/** While members answer that none leads, an election is in progress: retries are more frequent for this long. */
const ELECTION_MS = 3_000
const ELECTION_PAUSE_MAX_MS = 400
/** A leader that was unreachable within this time is not tried again only because others still name it. */
const UNREACHABLE_MS = 1_000
/** Buffered bytes of a connection above which nothing more is sent. */
const BUFFERED_MAX = 4 * 2 ** 20
/** Messages per frame. */
const FRAME_MESSAGES_MAX = 1024
/** Without a message for this long the link pings; after as long again it counts as dead. */
export const SILENCE_MS = 10_000
/**
 * The same while an answer is awaited, which usually takes a few milliseconds, and other members are known: then the link
 * pings, and waits this long.
 */
const ANSWER_MS = 1_000
const PONG_MS = 1_000

/**
 * One connection at a time to a member that takes commands.
 *
 * - *idle*: not needed yet, or unreachable and no longer needed.
 * - *connecting*: attempts over all known URLs, the leader's first, with growing jittered pauses,
 *   as long as anything needs it (callers have their own timeouts).
 * - *connected*: after `hello` and the `welcome` of a leader. A newer epoch is accepted, an older
 *   one refused. The messages of one turn leave as one frame, a large burst as a few (see {@link EarlyFlush}).
 * - *closed*: final.
 */
export class Link {
  readonly #options: LinkOptions
  readonly #events: LinkEvents
  readonly #urls: string[]
  #status: EngineStatus = { state: 'idle' }
  #channel: Channel | undefined
  #generation = 0
  #attempt = 0
  #pauseEndsAt: number | undefined
  #turn = 0
  #preferred: string | undefined
  #redirects = 0
  /** Start of the present outage. */
  #outageSince: number | undefined
  /** The answer of a member since the last connection that it knows no leader. */
  #noLeader: LeaseholdError | undefined
  /** By URL: when it was last unreachable. */
  readonly #unreachableAt = new Map<string, number>()
  #epoch = 0
  #outbox: ClientMessage[] = []
  #flushing = false
  readonly #earlyFlush = new EarlyFlush()
  #lastError: LeaseholdError | undefined
  #cancelTimer: () => void = () => {}
  #cancelSilence: () => void = () => {}
  #probe: { heard: boolean } | undefined
  #cancelProbe: () => void = () => {}
  #heard = false
  #cancelAnswer: (() => void) | undefined
  #heardLately = false

  constructor(options: LinkOptions, events: LinkEvents) {
    this.#options = options
    this.#events = events
    this.#urls = [...new Set(options.urls)]
    if (this.#urls.length === 0) throw new InvalidError('at least one URL is needed')
  }

  get status(): EngineStatus {
    return this.#status
  }

  get connected(): boolean {
    return this.#status.state === 'connected'
  }

  /** Highest epoch that was seen. */
  get epoch(): number {
    return this.#epoch
  }

  /** Why there is no connection, for waiting callers: what a member answered counts more than a failure to connect. */
  get outage(): LeaseholdError | undefined {
    return this.#noLeader ?? this.#lastError
  }

  /** Why the last attempt failed. */
  get lastError(): LeaseholdError | undefined {
    return this.#lastError
  }

  /** Starts to connect unless connected or connecting. */
  ensureConnected(): void {
    if (this.#status.state === 'idle') this.#connectSoon()
    else if (this.#pauseEndsAt !== undefined && this.#events.hasWaiters()) this.#pause()
  }

  /** Queues a message for the connection; dropped without one. */
  send(message: ClientMessage): void {
    if (!this.connected) return
    this.#outbox.push(message)
    if (!this.#cancelAnswer) this.#watchAnswers()
    if (this.#earlyFlush.shouldFlush(this.#outbox.length, this.#events.awaited())) this.#sendFrame()
    this.#flushSoon()
  }

  /** The member has served a request: the next failure counts as the first one again. */
  succeeded(): void {
    this.#attempt = 0
    this.#redirects = 0
    this.#outageSince = undefined
    this.#noLeader = undefined
    if (this.#unreachableAt.size > 0) this.#unreachableAt.clear()
  }

  /** Drops this connection and tries `url`, or the next one. */
  drop(error: LeaseholdError, url = ''): void {
    if (this.#status.state === 'closed' || this.#status.state === 'idle') return
    this.#dropChannel()
    this.#failed(error, url)
  }

  /**
   * Pings the service because an answer is overdue: a slow service still answers a ping at once. If nothing arrives
   * within `patienceMs`, the connection is dead although it looks open, and is dropped.
   */
  probe(error: LeaseholdError, patienceMs: number): void {
    if (!this.connected || this.#probe) return
    this.send({ kind: 'ping', correlation: PING_CORRELATION })
    const probe = { heard: false }
    this.#probe = probe
    this.#cancelProbe = after(this.#options.platform, patienceMs, () => {
      this.#probe = undefined
      if (!probe.heard) this.drop(error)
    })
  }

  close(): void {
    if (this.#status.state === 'closed') return
    this.#cancelTimer()
    this.#pauseEndsAt = undefined
    // Messages of this turn are still sent.
    if (this.connected && this.#outbox.length > 0) this.#channel?.send(this.#outbox.splice(0, FRAME_MESSAGES_MAX))
    this.#dropChannel()
    this.#become({ state: 'closed' })
  }

  #connectSoon(): void {
    this.#attempt++
    const { platform } = this.#options
    const { outage } = this
    this.#become({ state: 'connecting', attempt: this.#attempt, ...(outage ? { lastError: outage } : {}) })
    const now = platform.monotonicMs()
    const isElecting = this.#noLeader !== undefined && now - (this.#outageSince ?? now) < ELECTION_MS
    this.#pauseEndsAt = now + backoffMs(platform, this.#attempt, isElecting ? ELECTION_PAUSE_MAX_MS : undefined)
    this.#pause()
  }

  /** Keeps the process alive only while a caller waits for the connection. */
  #pause(): void {
    const { platform } = this.#options
    const pauseMs = Math.max(0, (this.#pauseEndsAt ?? 0) - platform.monotonicMs())
    this.#cancelTimer()
    this.#cancelTimer = platform.after(pauseMs, () => this.#connect(), this.#events.hasWaiters())
  }

  #connect(): void {
    this.#pauseEndsAt = undefined
    const { connector, platform } = this.#options
    const attemptTimeoutMs = this.#patienceMs
    const url = this.#preferred ?? (this.#urls[this.#turn++ % this.#urls.length] as string)
    const generation = ++this.#generation
    const mine = () => generation === this.#generation
    this.#cancelTimer = after(platform, attemptTimeoutMs, () => {
      this.#attemptFailed(new UnavailableError(`${url} did not answer within ${attemptTimeoutMs} ms`))
    })
    try {
      this.#channel = connector.connect(url, {
        opened: () => mine() && this.#hello(),
        received: (messages) => mine() && this.#received(url, messages, mine),
        closed: (error) => mine() && this.#closed(url, error),
      })
    } catch (error) {
      this.#attemptFailed(new UnavailableError(`cannot connect to ${url}`, { cause: error }))
    }
  }

  /**
   * With several members, a silent one must not use up the time in which another could be found: the first round over
   * all is quick, later ones wait longer, for slow networks.
   */
  get #patienceMs(): number {
    const { attemptTimeoutMs } = this.#options
    const { length } = this.#urls
    if (length === 1) return attemptTimeoutMs
    const round = Math.floor((this.#attempt - 1) / length)
    return Math.min(attemptTimeoutMs, ATTEMPT_FIRST_MS * 2 ** round)
  }

  #hello(): void {
    const { apiKey, client } = this.#options
    this.#channel?.send([{ kind: 'hello', version: STREAM_VERSION, apiKey, client, epoch: this.#epoch }])
  }

  #received(url: string, messages: readonly ServerMessage[], mine: () => boolean): void {
    this.#heard = true
    this.#heardLately = true
    if (this.#probe) this.#probe.heard = true
    this.#earlyFlush.heard(this.#options.platform.monotonicMs())
    for (const message of messages) {
      if (!mine()) return
      if (message.kind === 'welcome') this.#welcome(url, message)
      else if (message.kind === 'error' && message.correlation === 0) this.#connectionError(message)
      else if (this.connected && message.kind !== 'pong') this.#events.message(message)
    }
  }

  #welcome(url: string, welcome: Welcome): void {
    if (this.connected) return this.#attemptFailed(new UnavailableError(`${url} sent a second welcome`))
    for (const other of welcome.urls) {
      if (!this.#urls.includes(other) && this.#urls.length < URLS_MAX) this.#urls.push(other)
    }
    if (welcome.version !== STREAM_VERSION) {
      const message = `${url} speaks version ${welcome.version} of the stream, this client ${STREAM_VERSION}`
      return this.#refused(new InvalidError(message, { hint: 'update the older side' }))
    }
    if (welcome.epoch < this.#epoch) {
      const message = `${url} is of epoch ${welcome.epoch}, older than ${this.#epoch}, which this client has seen`
      return this.#attemptFailed(new EpochChangedError(message, { hint: 'this member was left behind by a restore' }))
    }
    if (welcome.leaderUrl !== '' && welcome.leaderUrl !== url) {
      return this.#attemptFailed(new UnavailableError(`${url} does not lead`, { code: 'no-quorum' }), welcome.leaderUrl)
    }
    this.#cancelTimer()
    this.#epoch = welcome.epoch
    this.#lastError = undefined
    this.#preferred = url
    this.#become({ state: 'connected', url, epoch: welcome.epoch })
    this.#watchSilence()
    this.#events.up(welcome)
  }

  #connectionError(message: ServerMessage & { kind: 'error' }): void {
    const { code, message: text, hint } = message.refused
    const error = errorOf(code, text, { hint })
    if (error instanceof AccessError || error instanceof InvalidError) this.#refused(error)
    else this.#attemptFailed(error, message.leaderUrl)
  }

  /** An immediate retry would not help: goes idle until the next request. */
  #refused(error: LeaseholdError): void {
    this.#dropChannel()
    this.#cancelTimer()
    this.#lastError = error
    this.#attempt = 0
    this.#become({ state: 'idle' })
    this.#events.refused(error)
  }

  #closed(url: string, error: Error): void {
    if (!this.connected) this.#unreachableAt.set(url, this.#options.platform.monotonicMs())
    this.#attemptFailed(new UnavailableError(`the connection to ${url} was lost: ${error.message}`, { cause: error }))
  }

  #attemptFailed(error: LeaseholdError, leaderUrl = ''): void {
    this.#dropChannel()
    this.#failed(error, leaderUrl)
  }

  #failed(error: LeaseholdError, leaderUrl: string): void {
    const now = this.#options.platform.monotonicMs()
    this.#outageSince ??= now
    if (error.code === 'no-quorum') this.#noLeader = error
    this.#lastError = error
    this.#preferred = undefined
    const isGone = now - (this.#unreachableAt.get(leaderUrl) ?? Number.NEGATIVE_INFINITY) < UNREACHABLE_MS
    if (leaderUrl !== '' && !isGone) {
      this.#preferred = leaderUrl
      if (++this.#redirects <= REDIRECTS_MAX) this.#attempt = 0
    }
    if (this.#status.state === 'closed') return
    if (this.#attempt < UNNEEDED_ATTEMPTS_MAX || this.#events.needed()) return this.#connectSoon()
    this.#attempt = 0
    this.#become({ state: 'idle' })
  }

  #dropChannel(): void {
    this.#generation++
    const channel = this.#channel
    this.#channel = undefined
    this.#outbox = []
    this.#cancelTimer()
    this.#cancelSilence()
    this.#cancelAnswer?.()
    this.#cancelAnswer = undefined
    this.#cancelProbe()
    this.#probe = undefined
    channel?.close()
    if (!this.connected) return
    this.#status = { state: 'connecting', attempt: 0 }
    this.#events.down()
  }

  #flush(): void {
    this.#flushing = false
    this.#earlyFlush.turnEnded(this.#outbox.length, this.#options.platform.monotonicMs())
    if (this.#sendFrame()) this.#flushSoon()
    else if (this.connected && this.#outbox.length > 0) {
      this.#flushing = true
      after(this.#options.platform, 5, () => this.#flush())
    }
  }

  #flushSoon(): void {
    if (this.#outbox.length === 0 || this.#flushing) return
    this.#flushing = true
    this.#options.platform.soon(() => this.#flush())
  }

  /** False: nothing was sent, because the connection is missing or full. */
  #sendFrame(): boolean {
    const channel = this.#channel
    if (!channel || !this.connected || channel.buffered > BUFFERED_MAX) return false
    const batch = this.#outbox
    if (batch.length === 0) return true
    this.#outbox = batch.length > FRAME_MESSAGES_MAX ? batch.splice(FRAME_MESSAGES_MAX) : []
    channel.send(batch)
    this.#earlyFlush.sent(batch.length, this.#options.platform.monotonicMs())
    return true
  }

  /** Detects a half-open connection, which looks open for minutes: pings, and drops it if nothing arrives. */
  #watchSilence(): void {
    this.#cancelSilence()
    this.#heard = false
    let asked = false
    const look = () => {
      if (this.#heard) asked = false
      else if (asked) return this.drop(new UnavailableError(`nothing was received for ${2 * SILENCE_MS} ms`))
      else {
        asked = true
        this.send({ kind: 'ping', correlation: PING_CORRELATION })
      }
      this.#heard = false
      this.#cancelSilence = after(this.#options.platform, SILENCE_MS, look)
    }
    this.#cancelSilence = after(this.#options.platform, SILENCE_MS, look)
  }

  /** Detects a silent member while answers are awaited and other members could serve them. */
  #watchAnswers(): void {
    this.#heardLately = false
    this.#cancelAnswer = after(this.#options.platform, ANSWER_MS, () => {
      this.#cancelAnswer = undefined
      if (this.#events.awaited() === 0 || this.#urls.length === 1) return
      // Unsent messages cannot have an answer.
      const isSilent = !this.#heardLately && this.#channel?.buffered === 0
      if (isSilent) this.probe(new UnavailableError(`no answer for ${ANSWER_MS} ms`), PONG_MS)
      if (this.connected && !this.#cancelAnswer) this.#watchAnswers()
    })
  }

  #become(status: EngineStatus): void {
    this.#status = status
    this.#events.status(status)
  }
}

/** Pongs are not matched with pings: any message proves that the service is alive. */
const PING_CORRELATION = 2 ** 32 - 1
