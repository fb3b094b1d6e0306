import { type AcquireOptions, after } from '@leasehold/client'
import {
  AbortedError,
  AcquireTimeoutError,
  BusyError,
  errorOf,
  LeaseholdError,
  type LockRequest,
  NotHolderError,
  SessionEndedError,
  UnavailableError,
} from '@leasehold/core'
import { RefusedByEtcd } from './api/client.js'
import { CODE } from './api/grpc.js'
import { type HoldRecord, idOf, type RequestRecord, recordOf, type EndReasonRecord } from './layout.js'
import type { Compare, Op, TxnRequest } from './api/messages.js'
import type { OwnHold, SessionContext } from './session-context.js'
import { secretHash } from './end-reasons.js'
import { type LockView, mismatchOf, placeIn } from './grant-plan.js'
import { holdRecord, kvsOf } from './store.js'

/** How long an acquire with a wait of 0 waits for its answer. */
const ANSWER_MS = 5_000
/** One call within a wait. */
const CALL_TIMEOUT_MS = 10_000
const RETRY_PAUSE_MS = 100
/** Interval between two checks of a waiter, without any event. */
const RECHECK_MS = 20_000
/** The grant of a waiter is written in the revision in which its predecessor leaves: its event follows within this. */
const GRANT_GRACE_MS = 3

export interface Acquired {
  readonly id: bigint
  readonly hold: OwnHold
  readonly secret: string | undefined
}

/**
 * One acquire.
 *
 * - *sent*: one transaction acquires the locks if they are free and without waiters, and queues otherwise.
 * - *queued*: watches its own grant, and per lock the request in front of it, or, at the front, the holds
 *   and delays that block the lock. When that leaves, it grants every request that can be granted now.
 * - ends by its grant, its wait, its signal or its session; its keys in etcd are then deleted.
 */
export class Acquire {
  readonly names: readonly string[]
  readonly request: string
  readonly #session: SessionContext
  readonly #options: AcquireOptions
  readonly #number: number
  readonly #secret: string | undefined
  /** The base of the last transaction, and so of its grant. */
  #base = 0
  #resolve: (acquired: Acquired) => void = () => {}
  #reject: (error: LeaseholdError) => void = () => {}
  #isOver = false
  #isQueued = false
  #sending: Promise<void> = Promise.resolve()
  #granting = false
  #grantAgain = false
  #lastError: LeaseholdError | undefined
  #cancelTimer: () => void = () => {}
  #cancelGrant: () => void = () => {}
  #cancelRecheck: () => void = () => {}
  #unwatchGrant: () => void = () => {}
  readonly #watched = new Map<string, () => void>()
  readonly #onAbort = () => {
    const cause = this.#options.signal?.reason
    this.abandon(new AbortedError('acquire was aborted by its signal', { cause }))
  }

  constructor(session: SessionContext, options: AcquireOptions) {
    this.#session = session
    this.#options = options
    this.#number = session.nextRequest()
    this.request = `${session.sid}.${this.#number}`
    this.names = options.locks.map(({ name }) => name)
    const isSecret = options.persistent || options.portable
    this.#secret = isSecret ? Buffer.from(session.platform.randomBytes(16)).toString('hex') : undefined
  }

  run(): Promise<Acquired> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      const { signal, waitMs } = this.#options
      if (signal?.aborted) return this.#onAbort()
      signal?.addEventListener('abort', this.#onAbort)
      const limitMs = waitMs === 0 ? ANSWER_MS : waitMs
      this.#cancelTimer = after(this.#session.platform, limitMs, () => this.#timeOut(), true)
      this.#sending = this.#send().catch((error: unknown) => this.fail(asError(error)))
    })
  }

  /** Rejects, and deletes its keys in etcd. */
  abandon(error: LeaseholdError): void {
    if (this.#isOver) return
    this.#end()
    this.#reject(error)
    const what: EndReasonRecord['what'] = error instanceof AcquireTimeoutError ? 'timeout' : 'cancelled'
    void this.#sending.then(() => {
      const word = { what, actor: '', text: '' }
      return this.#session.retryRelease(this.names, this.request, word)
    })
  }

  /** Rejects; nothing is left in etcd, or it expires with the session. */
  fail(error: LeaseholdError): void {
    if (this.#isOver) return
    if (!(error instanceof SessionEndedError)) return this.abandon(error)
    this.#end()
    this.#reject(error)
  }

  #end(): void {
    this.#isOver = true
    this.#cancelTimer()
    this.#cancelGrant()
    this.#cancelRecheck()
    this.#unwatchGrant()
    for (const unwatch of this.#watched.values()) unwatch()
    this.#watched.clear()
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
  }

  #timeOut(): void {
    const { waitMs } = this.#options
    if (!this.#isQueued) return this.abandon(this.#session.store.client.unavailable('no answer to acquire in time'))
    this.abandon(new AcquireTimeoutError(`not acquired within ${waitMs} ms`, { cause: this.#lastError }))
  }

  // --- Sending ---

  async #send(): Promise<void> {
    const { store } = this.#session
    const record = await this.#prepare()
    // Without recent contention it only tries to acquire: a queue entry would double the size of the transaction.
    const waits = this.#options.waitMs !== 0
    let queues = waits && store.contended.some(this.names)
    for (;;) {
      const limitMs = this.#options.waitMs === 0 ? ANSWER_MS : Math.max(CALL_TIMEOUT_MS, this.#options.waitMs)
      const isWanted = () => !this.#isOver
      const { inner, revision } = await this.#session.guarded(limitMs, () => this.#acquireTxn(record, queues), isWanted)
      if (inner.succeeded) return this.#granted(holdOf({ ...record, base: this.#base }, this.names), revision, false)
      const views = this.names.map((name, i) => {
        const at = i * 2 + (queues ? 1 : 0)
        return store.viewOf(name, [...kvsOf(inner.responses[at]), ...kvsOf(inner.responses[at + 1])])
      })
      const own = views[0]?.blockers.find(({ kind, request }) => kind === 'hold' && request === this.request)
      // An earlier transaction whose answer was lost may have queued it: its queue entry must end with the hold.
      if (own) return this.#granted(own.record, own.createRevision, true)
      this.#checkMismatch(views)
      this.#isQueued = queues
      if (queues) {
        store.contended.add(this.names)
        return this.#wait(views, revision)
      }
      store.contended.add(this.names)
      const isFree = views.every((view, i) => {
        const mode = record.locks[i]?.mode
        return view.waiters.length === 0 && mode !== undefined && placeIn(view, mode) !== undefined
      })
      if (!isFree && !waits) throw new BusyError(busyText(this.names, views))
      // It waits; or there is room beside others, and it is granted at once.
      queues = true
    }
  }

  async #prepare(): Promise<RequestRecord> {
    const session = this.#session
    const { locks, waitMs, lockDelayMs, persistent, data } = this.#options
    const delayLease = lockDelayMs === 0 ? 0n : await session.delayLease(lockDelayMs, CALL_TIMEOUT_MS)
    return {
      epoch: session.store.epoch,
      sid: session.sid,
      session: String(session.id),
      client: session.client,
      number: this.#number,
      locks,
      at: session.platform.wallMs(),
      waitMs: Number.isFinite(waitMs) ? waitMs : null,
      delayMs: lockDelayMs,
      delayLease: String(delayLease),
      persistent,
      ...(this.#secret === undefined ? {} : { secret: secretHash(this.#secret) }),
      data: Buffer.from(data).toString('base64'),
    }
  }

  #acquireTxn(unbased: RequestRecord, queues: boolean): TxnRequest {
    const { store, leaseId: lease } = this.#session
    const { layout } = store
    this.#base = store.base
    const record = { ...unbased, base: this.#base }
    const isEmpty = this.names.map((name): Compare => {
      return { result: 0, target: 1, ...layout.lock(name), createRevision: 0 }
    })
    const take = store.grantOps(holdOf(record, this.names), this.request, lease)
    const looks = this.names.flatMap((name): Op[] => [
      { range: layout.blockers(name) },
      { range: { ...layout.waiters(name), sortOrder: 2, sortTarget: 2, limit: 2 } },
    ])
    if (!queues) return { compare: isEmpty, success: take, failure: looks }
    const value = Buffer.from(JSON.stringify(record))
    const first = this.names[0] as string
    const queue: TxnRequest = {
      compare: [layout.waiter(first, this.request), layout.hold(first, this.request)].map((key) => {
        return { result: 0, target: 1, key, createRevision: 0 }
      }),
      success: this.names.map((name) => ({ put: { key: layout.waiter(name, this.request), value, lease } })),
      failure: [],
    }
    return { compare: isEmpty, success: take, failure: [{ txn: queue }, ...looks] }
  }

  #checkMismatch(views: readonly LockView[]): void {
    for (const [i, view] of views.entries()) {
      const { mode, name } = this.#options.locks[i] as LockRequest
      const ahead = view.waiters.filter(({ request }) => request !== this.request)
      const there = [...view.blockers.map((one) => one.mode), ...ahead.map((one) => modeIn(one.record, name))]
      const problem = mismatchOf(mode, there)
      if (problem !== undefined) throw errorOf('mismatch', `${JSON.stringify(name)}: ${problem}`)
    }
  }

  // --- Waiting ---

  #wait(views: readonly LockView[], revision: number): void {
    if (this.#isOver) return
    const { store } = this.#session
    const key = store.layout.hold(this.names[0] as string, this.request)
    this.#unwatchGrant = store.client.watches.add(
      { key, from: revision + 1, noDelete: true },
      {
        events: ([event]) => {
          if (event) void this.#granted(recordOf<HoldRecord>(event.kv), event.kv.createRevision, true)
        },
        gap: () => this.#grantSoon(0),
      },
    )
    this.#watchBlockers(views, revision)
    this.#recheck()
  }

  /** Watches what blocks the request; grants when nothing does. */
  #watchBlockers(views: readonly LockView[], revision: number): void {
    const wanted = new Map<string, () => () => void>()
    let isFree = true
    for (const [i, view] of views.entries()) {
      const { name, mode } = this.#options.locks[i] as LockRequest
      const place = view.waiters.findIndex(({ request }) => request === this.request)
      const before = place < 0 ? undefined : view.waiters[place - 1]
      if (before === undefined) {
        if (placeIn(view, mode) === undefined) isFree = false
        const what = `${name}\0`
        wanted.set(what, () => this.#watch(what, this.#session.store.layout.blockers(name), revision, true))
        continue
      }
      isFree = false
      const { request } = before
      const { layout } = this.#session.store
      const turn = `${name}\0q${request}`
      wanted.set(turn, () => this.#watch(turn, { key: layout.waiter(name, request) }, revision, true))
      // There may be room beside it: then the blockers of the lock must be watched from its grant on.
      if (mode !== 'exclusive' && modeIn(before.record, name) !== 'exclusive') {
        const grant = `${name}\0h${request}`
        wanted.set(grant, () => this.#watch(grant, { key: layout.hold(name, request) }, revision, false))
      }
    }
    for (const [what, unwatch] of this.#watched) {
      if (wanted.has(what)) continue
      unwatch()
      this.#watched.delete(what)
    }
    for (const [what, watch] of wanted) if (!this.#watched.has(what)) this.#watched.set(what, watch())
    if (isFree) this.#grantSoon(0)
  }

  #watch(what: string, span: { key: Buffer; rangeEnd?: Buffer }, revision: number, leaves: boolean): () => void {
    const filter = leaves ? { noPut: true } : { noDelete: true }
    return this.#session.store.client.watches.add(
      { ...span, from: revision + 1, ...filter },
      {
        events: () => this.#grantSoon(GRANT_GRACE_MS),
        gap: () => {
          // The watch has ended: the next check watches again.
          this.#watched.delete(what)
          this.#grantSoon(0)
        },
      },
    )
  }

  /**
   * Checks without an event from time to time, because releases of etcd 3.4 and 3.5 have lost deletions around
   * a compaction (17529, 18089 and 19179 of etcd's issues).
   */
  #recheck(): void {
    const { platform } = this.#session
    const delayMs = RECHECK_MS * (0.75 + platform.random() / 2)
    this.#cancelRecheck = platform.after(delayMs, () => {
      this.#grantSoon(0)
      this.#recheck()
    })
  }

  #grantSoon(delayMs: number): void {
    if (this.#isOver) return
    if (this.#granting) {
      this.#grantAgain = true
      return
    }
    this.#granting = true
    const grantWaiters = () => {
      this.#grantWaiters().then(
        () => this.#grantAttempted(0),
        (error: unknown) => {
          this.#lastError = asError(error)
          if (error instanceof UnavailableError) {
            this.#grantAgain = true
            this.#grantAttempted(RETRY_PAUSE_MS)
          } else this.fail(asError(error))
        },
      )
    }
    this.#cancelGrant = delayMs === 0 ? (grantWaiters(), () => {}) : this.#session.platform.after(delayMs, grantWaiters)
  }

  #grantAttempted(delayMs: number): void {
    this.#granting = false
    if (this.#isOver || !this.#grantAgain) return
    this.#grantAgain = false
    this.#grantSoon(delayMs)
  }

  async #grantWaiters(): Promise<void> {
    if (this.#isOver) return
    const { revision, locks, grants, base } = await this.#session.store.grantWaiters(this.names, CALL_TIMEOUT_MS)
    if (this.#isOver) return
    const grant = grants.find(({ waiter }) => waiter.request === this.request)
    if (grant) {
      return this.#granted(holdRecord(grant, this.#session.platform.wallMs(), base), revision, true)
    }
    const views = this.names.map((name) => locks.get(name) as LockView)
    const own = views[0]?.blockers.find(({ kind, request }) => kind === 'hold' && request === this.request)
    if (own) return this.#granted(own.record, own.createRevision, true)
    if (!views.some(({ waiters }) => waiters.some(({ request }) => request === this.request))) {
      await this.#session.barrier(CALL_TIMEOUT_MS)
      throw new NotHolderError('it was granted, and ended before the answer arrived')
    }
    // Others were granted: the blockers are read again, at once.
    if (grants.length > 0) this.#grantAgain = true
    else this.#watchBlockers(views, revision)
  }

  // --- The grant ---

  async #granted(record: HoldRecord, revision: number, hasWaited: boolean): Promise<void> {
    if (this.#isOver) return
    const hold: OwnHold = { request: this.request, record, hasWaited }
    if (record.persistent) {
      try {
        await this.#detach(record, revision)
      } catch (error) {
        return this.fail(asError(error))
      }
      if (this.#isOver) return
    }
    this.#end()
    this.#resolve({ id: idOf(record, revision, record.ordinal), hold, secret: this.#secret })
  }

  /** Moves a persistent hold out of its session, when the session knows of the grant. */
  async #detach(record: HoldRecord, revision: number): Promise<void> {
    const { store } = this.#session
    const { layout } = store
    const { inner } = await this.#session.guarded(CALL_TIMEOUT_MS, () => ({
      compare: this.names.map((name) => {
        return { result: 0, target: 1, key: layout.hold(name, this.request), createRevision: revision }
      }),
      success: [
        ...store.grantOps(record, this.request, 0n),
        ...this.names.map((name): Op => ({ delete: { key: layout.waiter(name, this.request) } })),
      ],
      failure: [],
    }))
    if (!inner.succeeded) throw new NotHolderError('it was granted, and ended before the answer arrived')
  }
}

/** The hold of a request that finds its locks free. */
function holdOf(record: RequestRecord, names: readonly string[]): HoldRecord {
  const terms = names.map((_, i) => {
    const mode = record.locks[i]?.mode
    if (typeof mode === 'object') return { slot: 0 }
    return mode === 'shared' ? { first: 0 } : {}
  })
  return { ...record, ordinal: 0, terms, grantedAt: record.at }
}

function modeIn(record: RequestRecord, name: string) {
  return record.locks.find((lock) => lock.name === name)?.mode ?? 'exclusive'
}

function busyText(names: readonly string[], views: readonly LockView[]): string {
  for (const [i, { blockers, waiters }] of views.entries()) {
    const name = JSON.stringify(names[i])
    const [blocker] = blockers
    if (blocker?.kind === 'hold') return `${name} is held by ${JSON.stringify(blocker.record.client)}`
    if (blocker) return `${name} is blocked by a lock delay`
    if (waiters[0]) return `${name}: ${JSON.stringify(waiters[0].record.client)} waits in front`
  }
  return `${names.join(', ')} is not free`
}

function asError(error: unknown): LeaseholdError {
  if (error instanceof RefusedByEtcd && error.status === CODE.notFound) {
    return new SessionEndedError(error.message, { cause: error })
  }
  if (error instanceof LeaseholdError) return error
  return new UnavailableError(`etcd: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
}
