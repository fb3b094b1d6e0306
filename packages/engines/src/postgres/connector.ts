import type { Channel, ChannelEvents, ClientPlatform, Connector } from '@leasehold/client'
import {
  AccessError,
  type ClientMessage,
  EpochChangedError,
  InvalidError,
  type LeaseholdError,
  LockState,
  UnavailableError,
} from '@leasehold/core'
import { lockViews, refused as refusal, StreamHub } from '@leasehold/replica'
import { AppliedLog } from './applied-log.js'
import { CallError, Database, type Loaded, type Place } from './database.js'
import { errorOfPg, isRaised, type PgDriver } from './driver.js'
import { Listener } from './listener.js'
import { PostgresMember } from './member.js'
import { StatementLimit } from './statement-limit.js'
import type { PostgresUrl } from './url.js'
import { Warnings } from './server-warnings.js'

export interface PostgresConnectorOptions {
  readonly platform: ClientPlatform
  readonly driver: PgDriver
  readonly place: PostgresUrl
  readonly timeoutMs: number
  /** For the driver's option `ssl`. */
  readonly ssl?: unknown
}

const START: Place = { index: 0, nonce: '0' }

/** Creates members on a database, and connections to them. The applied log is kept for the next connection. */
export class PostgresConnector implements Connector {
  readonly #options: PostgresConnectorOptions
  #kept: AppliedLog | undefined
  /** The database lost entries that this client has seen: tokens of this epoch may have been granted and lost. */
  #lostEpoch = 0
  /** The highest epoch that was applied here, on any server. */
  #seenEpoch = 0
  readonly #warnings: Warnings
  readonly #limit: StatementLimit

  constructor(options: PostgresConnectorOptions) {
    this.#options = options
    this.#limit = new StatementLimit(options.platform)
    this.#warnings = new Warnings(options.platform, options.place.name)
  }

  connect(_url: string, events: ChannelEvents): Channel {
    const connection = new Connection(
      this.#options,
      this.#limit,
      events,
      (log) => this.#start(log),
      (log, cause) => this.#ended(log, cause),
    )
    return connection
  }

  /** The initial state on an open database. */
  async #start(database: Database): Promise<AppliedLog> {
    let loaded = await database.load()
    this.#warnings.of(loaded.doubts)
    this.#checkEpoch(loaded)
    const kept = this.#kept
    this.#kept = undefined
    if (kept && kept.service !== loaded.service) this.#lostEpoch = Math.max(this.#lostEpoch, kept.state.epoch)
    if (this.#lostEpoch >= loaded.epoch) {
      await this.#raise(database, this.#lostEpoch + 1)
      loaded = await database.load()
    }
    this.#lostEpoch = 0
    if (kept && kept.service === loaded.service && kept.state.epoch === loaded.epoch) return kept
    return fresh(loaded)
  }

  /** A server of an older epoch is an old primary, or a new one on which nothing was appended since its promotion. */
  #checkEpoch({ epoch, moved }: Loaded): void {
    if (epoch >= this.#seenEpoch) return
    if (moved) {
      this.#lostEpoch = Math.max(this.#lostEpoch, this.#seenEpoch)
      return
    }
    const { name } = this.#options.place
    throw new EpochChangedError(
      `${name} is of epoch ${epoch}, older than ${this.#seenEpoch}, which this client has seen`,
      {
        hint: `an old primary: stop it. If it is the server to continue with: leasehold engines epoch ${this.#seenEpoch + 1}`,
      },
    )
  }

  async #raise(database: Database, epoch: number): Promise<void> {
    const bytes = this.#options.platform.randomBytes(8)
    const nonce = new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(0).toString()
    try {
      await database.raiseEpoch(epoch, nonce)
    } catch (error) {
      // Another client has noticed it as well.
      if (!(error instanceof CallError && isRaised(error.cause, 'epoch'))) throw error
    }
  }

  #ended(log: AppliedLog, cause: unknown): void {
    this.#seenEpoch = Math.max(this.#seenEpoch, log.state.epoch)
    if (isRaised(cause, 'wentBack')) this.#lostEpoch = log.state.epoch
    else if (!isRaised(cause, 'gap') && !isRaised(cause, 'differs')) this.#kept = log
  }
}

function fresh({ service, first, snapshot }: Loaded): AppliedLog {
  if (snapshot === undefined) return new AppliedLog(service, LockState.create(first), START)
  const { index, nonce, state } = snapshot
  return new AppliedLog(service, LockState.restore(state), { index, nonce })
}

/** One connection of the client: the connections to the database, and the member on them. It ends with the first failure. */
class Connection implements Channel {
  readonly buffered = 0
  readonly #events: ChannelEvents
  readonly #database: Database
  readonly #limit: StatementLimit
  readonly #watches = new Set<number>()
  #member: PostgresMember | undefined
  #hub: StreamHub<LockState> | undefined
  #listener: Listener | undefined
  #receive: (messages: readonly ClientMessage[]) => void = () => {}
  #over = false
  readonly #keep: (log: AppliedLog, cause: unknown) => void

  constructor(
    options: PostgresConnectorOptions,
    limit: StatementLimit,
    events: ChannelEvents,
    start: (database: Database) => Promise<AppliedLog>,
    keep: (log: AppliedLog, cause: unknown) => void,
  ) {
    this.#events = events
    this.#keep = keep
    this.#limit = limit
    this.#database = new Database(options.driver, options.place, {
      timeoutMs: options.timeoutMs,
      ssl: options.ssl,
      limit,
      lost: (error) => this.#ended(new UnavailableError(`PostgreSQL: ${error.message}`, { cause: error }), error),
    })
    void this.#open(options, start)
  }

  send(messages: readonly ClientMessage[]): void {
    queueMicrotask(() => this.#over || this.#take(messages))
  }

  /** A call that was sent still completes; answers are dropped. */
  close(): void {
    if (this.#over) return
    this.#over = true
    this.#stop(undefined)
    // A call in flight completes at the server; then the connection ends.
    this.#database.end().catch(() => {})
  }

  async #open(options: PostgresConnectorOptions, start: (database: Database) => Promise<AppliedLog>): Promise<void> {
    try {
      await this.#database.open()
      const log = await start(this.#database)
      if (this.#over) return
      this.#run(options, log)
    } catch (error) {
      this.#ended(errorOfPg(error instanceof CallError ? error.cause : error, 'cannot start'), error)
    }
  }

  #run(options: PostgresConnectorOptions, log: AppliedLog): void {
    const { platform, driver, place, timeoutMs, ssl } = options
    const member = new PostgresMember({
      platform,
      database: this.#database,
      log,
      watched: () => this.#watches.size > 0,
      failed: (error, cause) => this.#ended(error, cause),
    })
    this.#member = member
    this.#log = log
    this.#hub = new StreamHub({ member, views: lockViews })
    const stream = this.#hub.open({
      emit: (messages) => queueMicrotask(() => this.#over || this.#events.received(messages)),
      end: (why) => this.#ended(new UnavailableError(why), undefined),
    })
    this.#receive = (messages) => stream.receive(messages)
    if (place.listen) {
      const notified = (index: number) => member.notified(index)
      const works = (now: boolean) => {
        // Notifications to the same URL arrive: there is no pooler in transaction mode.
        if (now && place.listenString === place.connectionString) this.#database.direct = true
        member.listening(now)
      }
      this.#listener = new Listener({
        platform,
        driver,
        place,
        timeoutMs,
        ssl,
        limit: this.#limit,
        probe: (payload) => this.#database.notify(payload),
        isNeeded: () => member.isActive,
        notified,
        works,
      })
    }
    // The welcome carries the present epoch, so the existing log is applied first.
    member.read(() => this.#over || this.#events.opened())
  }

  #log: AppliedLog | undefined

  #take(messages: readonly ClientMessage[]): void {
    for (const message of messages) {
      if (message.kind === 'watch') this.#watches.add(message.correlation)
      else if (message.kind === 'unwatch') this.#watches.delete(message.correlation)
      else if (message.kind === 'command' && message.command.kind === 'openSession') {
        this.#limit.sessionOpened(message.command.ttlMs)
      }
    }
    this.#receive(messages)
    this.#member?.look()
  }

  #ended(error: LeaseholdError, cause: unknown): void {
    if (this.#over) return
    this.#over = true
    this.#stop(cause)
    this.#database.cut()
    const { code, message, hint } = error
    // An error that a retry does not change is reported as a refusal, which ends the attempts.
    const final = error instanceof AccessError || error instanceof InvalidError
    const refused = refusal(code, message, hint)
    queueMicrotask(() => {
      if (final) this.#events.received([{ kind: 'error', correlation: 0, refused, leaderUrl: '' }])
      else this.#events.closed(error)
    })
  }

  #stop(cause: unknown): void {
    this.#listener?.close()
    this.#hub?.stop()
    this.#member?.stop(() => {})
    if (this.#log) this.#keep(this.#log, cause)
  }
}
