import {
  type AcquireOptions,
  type ClientPlatform,
  type EngineGrant,
  type EngineSession,
  type EngineSessionListener,
  NO_LISTENER,
  type SessionEndReason,
  sessionAbandonedError,
  sessionClosedError,
  sessionEndedError,
} from '@leasehold/client'
import {
  AbortedError,
  EpochChangedError,
  type LeaseholdError,
  LimitError,
  NotHolderError,
  splitToken,
  UnavailableError,
} from '@leasehold/core'
import { Acquire } from './acquire.js'
import { adopt, type AdoptOptions } from './adopt.js'
import { LostAnswer, RefusedByEtcd } from './api/client.js'
import { bytesOf, heldView, idOf, recordOf, revisionOf, type SessionRecord, type EndReasonRecord } from './layout.js'
import type { KeyValue, Op, TxnRequest, TxnResponse, WatchEventMessage } from './api/messages.js'
import { type RegisterWrite, writeRegister } from './registers.js'
import type { PlannedGrant } from './grant-plan.js'
import type { GuardedOutcome, OwnHold, SessionContext } from './session-context.js'
import { kvsOf, type Store } from './store.js'
import { secretHash } from './end-reasons.js'

/** Open acquires and writes of one session. */
const REQUESTS_MAX = 10_000
/** etcd takes 128 operations in a transaction; a hold has up to three keys per lock. */
export const LOCKS_MAX = 32
/** A lease for a delay lives this much longer than the session and the delay together. */
const DELAY_SLACK_MS = 1_000
const RETRY_PAUSE_MS = 200
const CALL_TIMEOUT_MS = 5_000
const TIMER_MAX_MS = 2 ** 31 - 1

export interface SessionOptions {
  readonly store: Store
  readonly platform: ClientPlatform
  readonly sid: string
  readonly lease: bigint
  readonly revision: number
  readonly record: SessionRecord
  readonly forget: (session: EtcdSession) => void
}

/**
 * A session: a lease of etcd, and a key under it. All keys of the session are attached to the lease and expire with it, and
 * every change requires that its key exists.
 *
 * The key's mod revision is also a barrier. After a lost answer the key is written again: an earlier transaction that
 * has not been applied yet can then never be applied. Only afterwards the outcome of the request is read.
 */
export class EtcdSession implements EngineSession, SessionContext {
  readonly id: bigint
  readonly ttlMs: number
  readonly sid: string
  /** The lease of etcd. */
  readonly leaseId: bigint
  readonly store: Store
  listener: EngineSessionListener = NO_LISTENER
  readonly #options: SessionOptions
  readonly #acquires = new Set<Acquire>()
  readonly #holds = new Map<bigint, OwnHold>()
  /** By lock delay in milliseconds: the lease of the keys that block after the end. */
  readonly #delayLeases = new Map<number, Promise<bigint>>()
  /** Answers of writes that have arrived; the next write deletes them. */
  readonly settledWrites: number[] = []
  #requests = 0
  #open = 0
  #guard: number
  #barrier: Promise<void> | undefined
  /** An answer was lost, and no barrier was raised since: earlier transactions may still be applied. */
  #isUncertain = false
  #ended: LeaseholdError | undefined
  #unwatch: () => void

  constructor(options: SessionOptions) {
    const { store, sid, lease, revision, record } = options
    this.#options = options
    this.store = store
    this.sid = sid
    this.leaseId = lease
    this.id = idOf(record, revision)
    this.ttlMs = record.ttlMs
    this.#guard = revision
    this.#unwatch = this.#watch(revision + 1)
  }

  get platform(): ClientPlatform {
    return this.#options.platform
  }

  get client(): string {
    return this.#options.record.client
  }

  get congested(): boolean {
    return this.#open >= REQUESTS_MAX
  }

  get ended(): LeaseholdError | undefined {
    return this.#ended
  }

  nextRequest(): number {
    return ++this.#requests
  }

  /**
   * One attempt. Only an answer of the present leader counts: a keep-alive may be answered by a leader that has
   * been replaced without knowing it. So the session's key is read afterwards, by a quorum, and in the same term.
   */
  async renew(timeoutMs: number): Promise<void> {
    this.#check()
    const { client, layout } = this.store
    const endAt = this.platform.monotonicMs() + timeoutMs
    const left = () => Math.max(1, endAt - this.platform.monotonicMs())
    // The leases of lock delays must not expire before the session.
    await Promise.all([...this.#delayLeases.values()].map(async (lease) => client.leaseKeepAlive(await lease, left())))
    const term = await client.leaseKeepAlive(this.leaseId, left())
    if (term === undefined) throw this.end('expired', sessionEndedError('expired'))
    const looks: Op[] = [{ range: { key: layout.session(this.sid) } }, { range: { key: layout.epoch } }]
    const request: TxnRequest = { compare: [], success: looks, failure: [] }
    const { header, responses } = await client.txn(request, { timeoutMs: left(), repeatable: true })
    this.#checkEpoch(kvsOf(responses[1])[0])
    this.#checkSession(kvsOf(responses[0])[0])
    if (header.raftTerm !== term) throw new UnavailableError('etcd elected another leader during the renewal')
  }

  async acquire(options: AcquireOptions): Promise<EngineGrant> {
    this.#check()
    if (this.congested) throw new LimitError(`${REQUESTS_MAX} requests of this session are open`)
    if (options.locks.length > LOCKS_MAX) {
      throw new LimitError(`etcd takes at most ${LOCKS_MAX} locks at once, not ${options.locks.length}`)
    }
    const acquire = new Acquire(this, options)
    this.#acquires.add(acquire)
    this.#open++
    try {
      const { hold, id, secret } = await acquire.run()
      return this.granted(id, hold, secret)
    } finally {
      this.#acquires.delete(acquire)
      this.#open--
    }
  }

  granted(id: bigint, hold: OwnHold, secret: string | undefined): EngineGrant {
    this.#holds.set(id, hold)
    const view = heldView(hold.record, revisionOf(hold.record, splitToken(id).serial).revision)
    const locks = view.locks.map(({ name, mode, token, slot }) => {
      return { name, mode, token, ...(slot === undefined ? {} : { slot }) }
    })
    return { id, locks, ...(secret === undefined ? {} : { secret }) }
  }

  cancelAcquires(why: string): void {
    for (const acquire of [...this.#acquires]) acquire.abandon(new AbortedError(why))
  }

  /** Whether an acquire of this session waits for one of these locks. */
  waitsFor(names: readonly string[]): boolean {
    for (const acquire of this.#acquires) if (acquire.names.some((name) => names.includes(name))) return true
    return false
  }

  adopt(options: AdoptOptions): Promise<EngineGrant> {
    this.#check()
    return adopt(this, options)
  }

  /** An unanswered release is retried until the session ends: a hold must not stay behind in a live session. */
  async release(hold: bigint, options: { timeoutMs: number; secret?: string }): Promise<{ released: boolean }> {
    const { timeoutMs, secret } = options
    const own = this.#holds.get(hold) ?? (await this.#findForeign(hold, secret, timeoutMs))
    if (own === undefined) return { released: false }
    this.#holds.delete(hold)
    const releasing = this.#releaseWithRetries(own)
    return new Promise((resolve, reject) => {
      const late = () => reject(this.store.client.unavailable('the release was not answered in time'))
      const cancel = this.platform.after(Math.min(timeoutMs, TIMER_MAX_MS), late, true)
      releasing.then(resolve, reject).finally(cancel)
    })
  }

  async #releaseWithRetries(own: OwnHold): Promise<{ released: boolean }> {
    const attempts = { repeats: 0 }
    for (;;) {
      try {
        return await this.#releaseOnce(own, CALL_TIMEOUT_MS, attempts)
      } catch (error) {
        if (!(error instanceof UnavailableError) || this.#ended || this.store.client.closed) throw error
        attempts.repeats++
        await new Promise<void>((resolve) => this.platform.after(RETRY_PAUSE_MS, resolve))
      }
    }
  }

  async #releaseOnce(own: OwnHold, timeoutMs: number, attempts: { repeats: number }): Promise<{ released: boolean }> {
    const names = own.record.locks.map(({ name }) => name)
    const ops = this.store.leaveOps(names, own.request, own.record.delayMs > 0, own.hasWaited)
    const isAlone = !own.hasWaited && names.length === 1 && own.record.locks[0]?.mode === 'exclusive'
    let request: TxnRequest = { compare: [], success: ops, failure: [] }
    let grants: readonly PlannedGrant[] = []
    if (!isAlone || this.waitsFor(names) || this.store.contended.some(names)) {
      const reading = await this.store.readForGrants(names, timeoutMs, own.request)
      const parts = this.store.parts(reading, reading.plan.grants, ops.length)
      const { compare, success } = parts
      grants = parts.grants
      // If another client changed something meanwhile, this hold still ends: its waiters see that, and grant.
      request = { compare: [this.store.epochHolds, ...compare], success: [...ops, ...success], failure: ops }
    }
    const options = { timeoutMs, repeatable: true, repeated: () => attempts.repeats++ }
    const answer = await this.store.client.txn(request, options).catch((error: unknown) => {
      // The lease of a waiter has expired: it is not granted, and this hold still ends.
      if (!(error instanceof RefusedByEtcd)) throw error
      return this.store.client.txn({ compare: [], success: ops, failure: [] }, options)
    })
    if (!answer.succeeded && grants.length > 0) await this.store.revokeClosedSessions(grants, timeoutMs)
    const deleted = answer.responses.slice(0, names.length).some((one) => (one.delete?.deleted ?? 0) > 0)
    return { released: deleted || attempts.repeats > 0 }
  }

  put(options: Omit<RegisterWrite, 'value'> & { value: Uint8Array }): Promise<bigint> {
    return this.#write(options)
  }

  async delete(options: Omit<RegisterWrite, 'value'>): Promise<void> {
    await this.#write(options)
  }

  /** A clean end. */
  async close(timeoutMs: number): Promise<void> {
    const { client, layout } = this.store
    if (this.#ended) return
    this.end('closed', sessionClosedError(), false)
    const key = layout.session(this.sid)
    const record: SessionRecord = { ...this.#options.record, state: 'closed', by: 'owner' }
    const request: TxnRequest = {
      compare: [{ result: 3, target: 1, key, createRevision: 0 }],
      success: [
        { put: { key, value: bytesOf(record), ignoreLease: true } },
        { delete: { key: layout.open(this.sid) } },
      ],
      failure: [],
    }
    await client.txn(request, { timeoutMs, repeatable: true })
    // Lock delays first: while the holds exist, the delays block nothing more.
    for (const lease of this.#delayLeases.values()) await client.leaseRevoke(await lease, timeoutMs)
    await client.leaseRevoke(this.leaseId, timeoutMs)
  }

  abandon(): void {
    this.end('expired', sessionAbandonedError(), false)
  }

  /** Ends the session on this side. `tells`: whether to call the listener. */
  end(reason: SessionEndReason, error: LeaseholdError, tells = true): LeaseholdError {
    if (this.#ended) return this.#ended
    this.#ended = error
    this.#unwatch()
    this.#options.forget(this)
    for (const acquire of [...this.#acquires]) acquire.fail(error)
    if (tells) this.listener.sessionEnded(reason)
    return error
  }

  /** The lease for what blocks after holds of this session with this delay. */
  delayLease(delayMs: number, timeoutMs: number): Promise<bigint> {
    let lease = this.#delayLeases.get(delayMs)
    if (lease === undefined) {
      lease = this.store.client.leaseGrant(this.ttlMs + delayMs + DELAY_SLACK_MS, timeoutMs)
      this.#delayLeases.set(delayMs, lease)
      lease.catch(() => this.#delayLeases.delete(delayMs))
    }
    return lease
  }

  /**
   * Runs a transaction exactly once, and only while the session is alive: `build` is called again after a lost
   * answer, when the barrier has made sure that no earlier sending can be applied any more.
   */
  async guarded(
    timeoutMs: number,
    build: (wasLost: boolean) => TxnRequest,
    isWanted: () => boolean = () => true,
  ): Promise<GuardedOutcome> {
    const { client, layout } = this.store
    const endAt = this.platform.monotonicMs() + timeoutMs
    let wasLost = false
    while (isWanted()) {
      this.#check()
      const left = Math.max(1, endAt - this.platform.monotonicMs())
      if (this.#isUncertain) await this.barrier(left)
      // After a reconnect the epoch is read again; a session never acts in a later epoch than its own.
      if ((await this.store.ready(left)) !== this.#options.record.epoch) {
        throw this.end('epoch-changed', new EpochChangedError('the epoch was raised'))
      }
      const key = layout.session(this.sid)
      const request: TxnRequest = {
        compare: [{ result: 0, target: 2, key, modRevision: this.#guard }, this.store.epochHolds],
        success: [{ txn: build(wasLost) }],
        failure: [{ range: { key } }, { range: { key: layout.epoch } }],
      }
      try {
        const answer = await client.txn(request, { timeoutMs: left, repeatable: false })
        if (answer.succeeded) {
          return { inner: answer.responses[0]?.txn as TxnResponse, revision: answer.header.revision, wasLost }
        }
        this.#checkEpoch(kvsOf(answer.responses[1])[0])
        this.#checkSession(kvsOf(answer.responses[0])[0])
      } catch (error) {
        if (!(error instanceof LostAnswer)) throw error
        wasLost = true
        this.#isUncertain = true
      }
    }
    throw new AbortedError('given up')
  }

  /** When it resolves, no earlier transaction can be applied any more. */
  barrier(timeoutMs: number): Promise<void> {
    this.#barrier ??= this.#raiseBarrier(timeoutMs).finally(() => {
      this.#barrier = undefined
    })
    return this.#barrier
  }

  async #raiseBarrier(timeoutMs: number): Promise<void> {
    this.#check()
    const key = this.store.layout.session(this.sid)
    const { header, responses, succeeded } = await this.store.client.txn(
      {
        compare: [{ result: 0, target: 2, key, modRevision: this.#guard }],
        success: [{ put: { key, value: bytesOf(this.#options.record), ignoreLease: true } }],
        failure: [{ range: { key } }],
      },
      { timeoutMs, repeatable: true },
    )
    if (succeeded) this.#guard = header.revision
    else this.#checkSession(kvsOf(responses[0])[0])
    this.#isUncertain = false
  }

  /** Deletes everything of a request, and retries until etcd is reachable again. At the latest it expires with the session. */
  async retryRelease(names: readonly string[], request: string, word: Omit<EndReasonRecord, 'request'>): Promise<void> {
    const ops = this.store.leaveOps(names, request, true)
    const put: Op = {
      put: { key: this.store.layout.endReason(this.sid), value: bytesOf({ ...word, request }), lease: this.leaseId },
    }
    while (!this.#ended && !this.store.client.closed) {
      try {
        await this.guarded(CALL_TIMEOUT_MS, () => ({ compare: [], success: [...ops, put], failure: [] }))
        return
      } catch (error) {
        if (!(error instanceof UnavailableError)) return
        await new Promise<void>((resolve) => this.platform.after(RETRY_PAUSE_MS, resolve))
      }
    }
  }

  async #write(write: RegisterWrite): Promise<bigint> {
    this.#check()
    if (this.congested) throw new LimitError(`${REQUESTS_MAX} requests of this session are open`)
    this.#open++
    try {
      return await writeRegister(this, write, (id) => this.#holds.get(id))
    } finally {
      this.#open--
    }
  }

  async #findForeign(id: bigint, secret: string | undefined, timeoutMs: number): Promise<OwnHold | undefined> {
    if (secret === undefined) return undefined
    const found = await this.store.findHold(id, timeoutMs)
    if (found === undefined) return undefined
    if (found.record.secret !== secretHash(secret)) throw new NotHolderError(`hold ${id} has another secret`)
    return { request: found.request, record: found.record, hasWaited: true }
  }

  #check(): void {
    if (this.#ended) throw this.#ended
  }

  /** Checks the session's key. @throws SessionEndedError when the session has ended */
  #checkSession(kv: KeyValue | undefined): void {
    if (kv === undefined) throw this.end('expired', sessionEndedError('expired'))
    const record = recordOf<SessionRecord>(kv)
    if (record.state === 'closed') {
      const reason = record.by === 'operator' ? 'operator' : 'closed'
      throw this.end(reason, sessionEndedError(reason, record.reason))
    }
    if (kv.modRevision > this.#guard) this.#guard = kv.modRevision
  }

  #checkEpoch(kv: KeyValue | undefined): void {
    if (kv !== undefined && this.store.note(kv) === this.#options.record.epoch) return
    this.store.forgetEpoch()
    throw this.end('epoch-changed', new EpochChangedError('the epoch was raised'))
  }

  // --- Events of the session's keys ---

  #watch(from: number): () => void {
    const { layout, client } = this.store
    const target = { key: layout.session(this.sid), rangeEnd: layout.sessionEnd(this.sid), from }
    return client.watches.add(target, {
      events: (events) => {
        for (const event of events) this.#received(event)
      },
      gap: () => void this.#resync(),
    })
  }

  #received(event: WatchEventMessage): void {
    const parsed = this.store.layout.parse(event.kv.key)
    if (parsed?.kind === 'session') {
      try {
        this.#checkSession(event.type === 0 ? event.kv : undefined)
      } catch {
        // The listener was called.
      }
    }
    if (parsed?.kind !== 'end-reason' || event.type !== 0) return
    const word = recordOf<EndReasonRecord>(event.kv)
    if (word.what !== 'stolen' && word.what !== 'moved') return
    for (const [id, hold] of this.#holds) {
      if (hold.request !== word.request) continue
      this.#holds.delete(id)
      this.listener.holdEnded(id, word.what, [word.actor, word.text].filter((part) => part !== '').join(': '))
    }
  }

  /** Reads the state after etcd has compacted events. */
  async #resync(): Promise<void> {
    if (this.#ended) return
    try {
      const holds = [...this.#holds]
      const { header, kvs } = await this.store.client.range(
        { key: this.store.layout.session(this.sid) },
        CALL_TIMEOUT_MS,
      )
      this.#checkSession(kvs[0])
      this.#unwatch = this.#watch(header.revision + 1)
      for (const [id, { request, record }] of holds) {
        const key = this.store.layout.hold(record.locks[0]?.name as string, request)
        const found = await this.store.client.range({ key, keysOnly: true }, CALL_TIMEOUT_MS)
        if (found.kvs.length === 0 && this.#holds.delete(id)) this.listener.holdEnded(id, 'stolen', 'it is gone')
      }
    } catch (error) {
      if (error instanceof UnavailableError) this.platform.after(RETRY_PAUSE_MS, () => void this.#resync())
    }
  }
}
