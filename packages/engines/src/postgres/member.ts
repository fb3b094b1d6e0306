import type { ClientPlatform } from '@leasehold/client'
import {
  type Command,
  type Cursor,
  EpochChangedError,
  type LeaseholdError,
  type LockState,
  type Millis,
  type Result,
  type SessionId,
} from '@leasehold/core'
import {
  type AppliedBatch,
  Listeners,
  type Member,
  type MemberStatus,
  mintSecrets,
  Proposals,
  noopLogger,
  type ReadView,
  refused,
  type Waiting,
} from '@leasehold/replica'
import { type AppliedLog, CHECK_ENTRIES } from './applied-log.js'
import { CallError, type Database, type LogRow } from './database.js'
import { errorOfPg } from './driver.js'

/** Bytes of commands in one entry; a single command may be larger. */
const BATCH_BYTES = 256 * 1024
/** Reads that wait for the end of the log; more are refused. */
const READS_MAX = 65_536
/** While a caller here waits, time is moved at least this often, so that sessions that are no longer renewed expire. */
const TICK_MS = 1_000
/** The same after a deadline that the database's clock had not reached yet. */
const DUE_AGAIN_MS = 5
/** Interval of polls while notifications arrive: one may get lost with its connection. */
const POLL_MS = 5_000
/** Interval of polls without notifications. */
const POLL_ALONE_MS = 100
/** Elapsed time is measured on this machine's clock, which may run this much slower than the database's. */
const CLOCK_RATE = 1.05
/** Clients that do not wait for an entry, but watch events or read often, are notified within this. */
const NOTIFY_PAUSE_MS = 25
/** Waiters that are checked before an entry; with more of them it counts as relevant to other clients. */
const LOOKED_AT_MAX = 100

export interface PostgresMemberOptions {
  readonly platform: ClientPlatform
  readonly database: Database
  readonly log: AppliedLog
  /** Whether events are watched, and so also expiries, which only the passing of time causes. */
  readonly watched: () => boolean
  /** The member has failed. Called once. */
  readonly failed: (error: LeaseholdError, cause: unknown) => void
}

type Reader = Parameters<Member<LockState>['read']>[0]

/**
 * A member whose log is a table. Every client of the database has one: it appends entries in a transaction that has the
 * head of the log locked, is told what others have appended, and applies all of it in order. There is no leader: the client that
 * appends moves time, by the database's clock.
 *
 * One call is in flight at a time; commands that arrive meanwhile form the next batch. A failed call ends the member, and nothing
 * that waits is answered: the requests are sent to the next member of this client, with the same request numbers.
 */
export class PostgresMember implements Member<LockState> {
  readonly #options: PostgresMemberOptions
  readonly #log: AppliedLog
  readonly #proposals = new Proposals()
  readonly #own = new Set<SessionId>()
  readonly #applied = new Listeners<[AppliedBatch]>(noopLogger)
  readonly #idle = new Listeners<[]>(noopLogger)
  readonly #statuses = new Listeners<[MemberStatus]>(noopLogger)
  #readers: Reader[] = []
  #running = false
  #stopped = false
  /** A reader was answered: it knows the epoch. */
  #answered = false
  /** The log may be longer than what was applied. */
  #doubtful = false
  /** Highest entry of a notification. */
  #noticed = 0
  /** Whether notifications arrive. */
  #notified = false
  /** No later than the stamp of the last applied entry, on this machine's clock; undefined: not known. */
  #stampedAfter: number | undefined
  /** When the call was sent that has last shown the end of the log. */
  #confirmedAt: number | undefined
  /** When the last applied entries arrived. */
  #heardAt: number
  /** When other clients were last notified, and whether they were not notified of the last entries. */
  #toldAt = 0
  #untold = false
  #cancelTelling: () => void = () => {}
  #cancelTimer: () => void = () => {}

  constructor(options: PostgresMemberOptions) {
    this.#options = options
    this.#log = options.log
    this.#heardAt = options.platform.monotonicMs()
  }

  get status(): MemberStatus {
    const { service, state, place } = this.#log
    return {
      cluster: service,
      epoch: state.epoch,
      member: 'postgres',
      role: this.#stopped ? 'stopped' : 'leader',
      leader: 'postgres',
      leaderUrl: '',
      term: 1,
      commitIndex: place.index,
      appliedIndex: place.index,
      disk: 'ok',
      failure: undefined,
    }
  }

  submit(command: Command, done: (result: Result) => void): void {
    if (this.#stopped) return
    const { platform } = this.#options
    const minted = mintSecrets(command, { bytes: (length) => platform.randomBytes(length), below: () => 0 })
    const unfit = this.#proposals.add(minted, done, BATCH_BYTES)
    if (unfit) return queueMicrotask(() => done(unfit))
    if ('session' in command && command.session !== undefined) this.#own.add(command.session)
    this.#kick()
  }

  read(done: Reader): void {
    if (this.#stopped) return
    if (this.#readers.length >= READS_MAX) {
      return queueMicrotask(() => done({ refused: refused('limit', `${READS_MAX} reads wait already`) }))
    }
    this.#readers.push(done)
    this.#kick()
  }

  stale(): ReadView<LockState> {
    return { state: this.#log.state, index: this.#log.state.index }
  }

  onApplied(listener: (batch: AppliedBatch) => void): () => void {
    return this.#applied.add(listener)
  }

  onIdle(listener: () => void): () => void {
    return this.#idle.add(listener)
  }

  onStatus(listener: (status: MemberStatus) => void): () => void {
    return this.#statuses.add(listener)
  }

  history(from: Cursor): ReturnType<Member<LockState>['history']> {
    return this.#log.since(from)
  }

  stop(done: () => void): void {
    this.#halt()
    queueMicrotask(done)
  }

  /** Another client has appended entry `index`. */
  notified(index: number): void {
    if (this.#stopped || !(index > this.#log.place.index)) return
    this.#noticed = Math.max(this.#noticed, index)
    this.#kick()
  }

  /** Whether notifications arrive has changed. */
  listening(works: boolean): void {
    this.#notified = works
    // Notifications may have been missed until now.
    this.#doubtful = true
    this.#kick()
  }

  /** Schedules the next poll again, because a watch started or ended. */
  look(): void {
    if (!this.#running && !this.#stopped) this.#schedule()
  }

  // --- The loop ---

  #kick(): void {
    if (this.#running || this.#stopped) return
    this.#running = true
    this.#cancelTimer()
    this.#options.platform.soon(() => void this.#run())
  }

  async #run(): Promise<void> {
    try {
      while (!this.#stopped && (await this.#step()));
    } catch (error) {
      return this.#fail(error)
    }
    this.#running = false
    if (!this.#stopped) this.#schedule()
  }

  /** One call. False: there is nothing to do. */
  async #step(): Promise<boolean> {
    const readers = this.#readers
    this.#readers = []
    if (this.#proposals.count > 0) await this.#append(false)
    else if (this.#isTimeDue) await this.#append(true)
    else if (readers.length > 0 || this.#behind) await this.#catchUp()
    else return false
    if (this.#stopped) return false
    if (this.#behind && readers.length > 0) this.#readers = [...readers, ...this.#readers]
    else for (const done of readers) this.#answer(done)
    this.#idle.call()
    return true
  }

  #answer(done: Reader): void {
    this.#answered = true
    done(this.stale())
  }

  async #append(tick: boolean): Promise<void> {
    const { platform, database } = this.#options
    const { data, batch } = this.#proposals.close(NO_STAMP, BATCH_BYTES)
    const commands = data.subarray(1)
    this.#doubtful = false
    const sentAt = platform.monotonicMs()
    const nonce = this.#nonce()
    const notify = batch.length > 0 && !isRenewal(batch) && (this.#isNews || sentAt - this.#toldAt >= NOTIFY_PAUSE_MS)
    const rows = await database.append({
      seen: this.#log.place,
      epoch: this.#log.state.epoch,
      elapsedMs: this.#stampedAfter === undefined ? undefined : elapsed(sentAt - this.#stampedAfter),
      nonce,
      commands,
      tick,
      notify,
      checked: this.#log.checked,
    })
    if (this.#stopped) return
    const own = rows.at(-1)?.nonce === nonce
    for (const row of rows) this.#apply(row, row.nonce === nonce ? { commands, batch } : undefined)
    this.#advance(rows.length > 0, sentAt, own)
    // Not appended: time had moved already, or the log was too far ahead. The log may continue beyond what was returned.
    if (notify && own) this.#told(sentAt)
    else if (own && batch.length > 0) this.#tellSoon()
    if (!own) {
      this.#doubtful = true
      this.#proposals.reopen(batch)
    } else if (this.#log.place.index % CHECK_ENTRIES === 0) {
      await database.compact(this.#log.place, this.#log.state.snapshot())
    }
  }

  async #catchUp(): Promise<void> {
    const sentAt = this.#options.platform.monotonicMs()
    this.#doubtful = false
    const { rows, whole } = await this.#options.database.since(this.#log.place)
    if (this.#stopped) return
    for (const row of rows) this.#apply(row, undefined)
    this.#advance(rows.length > 0, sentAt, false)
    if (whole) this.#noticed = 0
    else this.#doubtful = true
  }

  get #behind(): boolean {
    return this.#doubtful || this.#noticed > this.#log.place.index
  }

  #apply(row: LogRow, own: { commands: Uint8Array; batch: readonly Waiting[] } | undefined): void {
    const { batch, results, newEpoch } = this.#log.apply(row, own?.commands)
    if (newEpoch && this.#answered) {
      throw new EpochChangedError(`the service is of epoch ${row.epoch} now`, {
        hint: 'a replica was promoted, a backup restored, or an operator has raised it',
      })
    }
    if (own) {
      for (const result of results) if (result.kind === 'opened') this.#own.add(result.session)
      if (batch.pushes.some(({ session }) => !this.#own.has(session))) this.#untold = true
    }
    this.#applied.call(batch)
    own?.batch.forEach((waiting, i) => waiting.answer(results[i] as Result))
  }

  /** Updates what is known about the time of the last entry. */
  #advance(isNew: boolean, sentAt: number, own: boolean): void {
    // Entries of others that came after the end of the log was seen were stamped after that.
    if (own) this.#stampedAfter = sentAt
    else if (isNew && this.#confirmedAt !== undefined) this.#stampedAfter = this.#confirmedAt
    this.#confirmedAt = sentAt
    if (isNew) this.#heardAt = this.#options.platform.monotonicMs()
  }

  // --- Notifications ---

  /** Whether a session of another client waits: what is appended now may grant its request. */
  get #isNews(): boolean {
    let looked = 0
    for (const waiter of this.#log.state.machine.waiters.values()) {
      if (!this.#own.has(waiter.session.id) || ++looked > LOOKED_AT_MAX) return true
    }
    return false
  }

  #told(at: number): void {
    this.#toldAt = at
    this.#untold = false
    this.#cancelTelling()
  }

  /** Notifies other clients of an entry that was appended without a notification: at once if it concerns one of them. */
  #tellSoon(): void {
    const { platform, database } = this.#options
    const tell = () => {
      if (this.#stopped) return
      this.#told(platform.monotonicMs())
      database.notify(String(this.#log.place.index)).catch((error: unknown) => this.#fail(error))
    }
    this.#cancelTelling()
    if (this.#untold) tell()
    else this.#cancelTelling = platform.after(NOTIFY_PAUSE_MS, tell)
  }

  #halt(): void {
    this.#stopped = true
    this.#cancelTimer()
    this.#cancelTelling()
  }

  // --- Time ---

  /** Whether this client has sessions or watches, and so learns from entries of other clients. */
  get isActive(): boolean {
    return this.#own.size > 0 || this.#options.watched()
  }

  /** Whether this client waits for something that only the passing of time causes. */
  get #isInterested(): boolean {
    const { state } = this.#log
    if (!state.hasDeadlines) return false
    if (this.#options.watched()) return true
    for (const session of this.#own) if (!state.machine.sessions.has(session)) this.#own.delete(session)
    for (const waiter of state.machine.waiters.values()) if (this.#own.has(waiter.session.id)) return true
    return false
  }

  get #isTimeDue(): boolean {
    return this.#isInterested && this.#untilTime <= 0
  }

  /** Milliseconds until the log needs an entry that moves time. */
  get #untilTime(): number {
    const since = this.#options.platform.monotonicMs() - this.#heardAt
    const due = this.#log.state.nextDeadline()
    const untilDue = due === undefined ? TICK_MS : Math.max(DUE_AGAIN_MS, due - this.#log.state.now)
    return Math.min(untilDue, TICK_MS) - since
  }

  #schedule(): void {
    this.#cancelTimer()
    const { platform } = this.#options
    const interested = this.#isInterested
    const poll = this.#notified ? POLL_MS : POLL_ALONE_MS
    // Without a session of this client there is nothing to report.
    if (!interested && !this.isActive) return
    const jitter = 1 + 0.1 * platform.random()
    const delayMs = Math.min(poll * jitter, interested ? Math.max(1, this.#untilTime) : poll)
    this.#cancelTimer = platform.after(delayMs, () => {
      if (platform.monotonicMs() - (this.#confirmedAt ?? 0) >= poll) this.#doubtful = true
      this.#kick()
    })
  }

  #nonce(): string {
    const bytes = this.#options.platform.randomBytes(8)
    return new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(0).toString()
  }

  #fail(error: unknown): void {
    if (this.#stopped) return
    this.#halt()
    const cause = error instanceof CallError ? error.cause : error
    this.#options.failed(errorOfPg(cause, error instanceof CallError ? error.what : 'a call failed'), cause)
  }
}

const NO_STAMP = 0 as Millis

function elapsed(ms: number): number {
  return Math.ceil(ms * CLOCK_RATE) + 2
}

const RENEW_KIND = 2

/** Whether a batch only renews. Other clients need not learn of it: a client that waits for time to pass moves it itself. */
function isRenewal(batch: readonly Waiting[]): boolean {
  return batch.every(({ bytes }) => bytes[0] === RENEW_KIND)
}
