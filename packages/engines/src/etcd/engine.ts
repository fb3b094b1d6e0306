import type { ConnectionOptions } from 'node:tls'
import {
  ALL_CAPABILITIES,
  type Capabilities,
  type ClientPlatform,
  defaultPlatform,
  type Engine,
  type EngineRegister,
  type EngineSession,
  type EngineStatus,
} from '@leasehold/client'
import {
  AbortedError,
  type Cursor,
  EpochChangedError,
  type Index,
  LAST_ORDINAL,
  NotHolderError,
  type Query,
  type QueryResult,
  SessionEndedError,
  splitToken,
  UnavailableError,
  WatchError,
} from '@leasehold/core'
import { EtcdClient } from './api/client.js'
import { watchStore, type Item } from './events.js'
import { bytesOf, type HoldRecord, recordOf, serialOf, type SessionRecord } from './layout.js'
import type { Op, TxnRequest } from './api/messages.js'
import { queryStore } from './queries.js'
import { registerOf } from './registers.js'
import { EtcdSession } from './session.js'
import { endReasonOp } from './end-reasons.js'
import { kvsOf, Store } from './store.js'
import { parseEtcdUrl } from './url.js'

const POSITION_TIMEOUT_MS = 5_000
const SESSION_ATTEMPTS_MAX = 10

export interface EtcdEngineOptions {
  readonly tls?: ConnectionOptions
  readonly platform?: ClientPlatform
}

/**
 * An engine whose lock state lies in an etcd (3.4 or later): `etcd://h1,h2,h3`. Each grant is one transaction of etcd's
 * Raft, which checks that the waiter's lease is alive in the same step.
 *
 * @throws InvalidError for an invalid URL
 * @example
 * const locks = createLocksOn(etcdEngine('etcd://10.0.0.1,10.0.0.2,10.0.0.3'))
 */
export function etcdEngine(url: string, options: EtcdEngineOptions = {}): Engine {
  return new EtcdEngine(url, options)
}

class EtcdEngine implements Engine {
  readonly name: string
  readonly capabilities: Capabilities = ALL_CAPABILITIES
  readonly #platform: ClientPlatform
  readonly #client: EtcdClient
  readonly #store: Store
  readonly #sessions = new Set<EtcdSession>()
  readonly #watches = new Set<AbortController>()
  #listeners: ((status: EngineStatus) => void)[] = []

  constructor(url: string, options: EtcdEngineOptions) {
    const place = parseEtcdUrl(url, options.tls)
    this.#platform = options.platform ?? defaultPlatform
    // A password has no place in messages.
    this.name = url.replace(/\/\/[^@/]*@/, '//')
    this.#client = new EtcdClient(this.name, place, this.#platform, (status) => this.#tell(status))
    this.#store = new Store(this.#client, place.prefix, place.epoch, this.#platform)
    this.#store.onRevisionRegressed = (error) => {
      for (const session of [...this.#sessions]) session.end('epoch-changed', error)
    }
  }

  get status(): EngineStatus {
    return this.#client.status
  }

  onStatus(listener: (status: EngineStatus) => void): () => void {
    const own = (status: EngineStatus) => listener(status)
    this.#listeners = [...this.#listeners, own]
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== own)
    }
  }

  async connect(timeoutMs: number): Promise<void> {
    await this.#store.ready(timeoutMs)
  }

  async openSession(options: { ttlMs: number; client: string; timeoutMs: number }): Promise<EngineSession> {
    const { ttlMs, client, timeoutMs } = options
    this.#client.sessionOpened(ttlMs)
    const epoch = await this.#store.ready(timeoutMs)
    const lease = await this.#client.leaseGrant(ttlMs, timeoutMs)
    const sid = Buffer.from(this.#platform.randomBytes(8)).toString('hex')
    const { record, revision } = await this.#writeSession(
      { state: 'open', epoch, client, ttlMs },
      sid,
      lease,
      timeoutMs,
    )
    const session: EtcdSession = new EtcdSession({
      store: this.#store,
      platform: this.#platform,
      sid,
      lease,
      revision,
      record,
      forget: () => this.#sessions.delete(session),
    })
    this.#sessions.add(session)
    return session
  }

  /** Writes the session's keys with the base in force, which another client may raise at the same time. */
  async #writeSession(unbased: SessionRecord, sid: string, lease: bigint, timeoutMs: number) {
    const { layout } = this.#store
    const key = layout.session(sid)
    for (let attempt = 1; attempt <= SESSION_ATTEMPTS_MAX; attempt++) {
      const record: SessionRecord = { ...unbased, base: this.#store.base }
      const answer = await this.#client.txn(
        {
          compare: [this.#store.epochHolds, { result: 0, target: 1, key, createRevision: 0 }],
          success: [
            { put: { key, value: bytesOf(record), lease } },
            { put: { key: layout.open(sid), value: Buffer.from('1'), lease } },
          ],
          failure: [{ range: { key } }, { range: { key: layout.epoch } }],
        },
        { timeoutMs, repeatable: true },
      )
      if (answer.succeeded) return { record, revision: answer.header.revision }
      const [written] = kvsOf(answer.responses[0])
      if (written !== undefined) return { record: recordOf<SessionRecord>(written), revision: written.createRevision }
      const [kv] = kvsOf(answer.responses[1])
      if (kv === undefined || this.#store.note(kv) !== unbased.epoch) {
        this.#store.forgetEpoch()
        throw new EpochChangedError('the epoch was raised')
      }
    }
    throw new UnavailableError(`${this.name}: too many clients raise the base of its tokens at once`)
  }

  async query(query: Query, options: { stale: boolean; timeoutMs: number }): Promise<QueryResult & { epoch: number }> {
    await this.#store.ready(options.timeoutMs)
    return queryStore(this.#store, query, options)
  }

  async steal(hold: bigint, options: { actor: string; reason: string; timeoutMs: number }): Promise<void> {
    const { actor, reason, timeoutMs } = options
    const store = this.#store
    await store.ready(timeoutMs)
    const found = await store.findHold(hold, timeoutMs)
    if (found === undefined) throw new NotHolderError(`hold ${hold} does not exist (any more)`)
    const { request, record, revision } = found
    const names = record.locks.map(({ name }) => name)
    const word = await endReasonOp(store, found, { what: 'stolen', request, actor, text: reason }, timeoutMs)
    const ops: Op[] = [
      ...store.leaveOps(names, request, false),
      word,
      ...(await this.#delayOps(record, request, timeoutMs)),
    ]
    const key = store.layout.hold(names[0] as string, request)
    const { succeeded, repeated } = await this.#repeated(
      { compare: [{ result: 0, target: 1, key, createRevision: revision }], success: ops, failure: [] },
      timeoutMs,
    )
    // After a lost answer the hold is gone because the first sending has stolen it.
    if (!succeeded && !repeated) throw new NotHolderError(`hold ${hold} does not exist (any more)`)
  }

  async endSession(id: bigint, options: { reason: string; timeoutMs: number }): Promise<void> {
    const { reason, timeoutMs } = options
    const store = this.#store
    await store.ready(timeoutMs)
    const { serial } = splitToken(id)
    const { kvs } = await this.#client.range(store.layout.sessions, timeoutMs)
    const kv = kvs.find((one) => {
      if (store.layout.parse(one.key)?.kind !== 'session') return false
      const found = recordOf<SessionRecord>(one)
      return BigInt(found.epoch) === id >> 48n && serialOf(found, one.createRevision) === serial
    })
    const record = kv && recordOf<SessionRecord>(kv)
    if (kv === undefined || record?.state !== 'open')
      throw new SessionEndedError(`session ${id} does not exist (any more)`)
    const closed: SessionRecord = { ...record, state: 'closed', by: 'operator', reason }
    const sid = store.layout.parse(kv.key)?.name as string
    await this.#repeated(
      {
        compare: [{ result: 0, target: 1, key: kv.key, createRevision: kv.createRevision }],
        success: [
          { put: { key: kv.key, value: bytesOf(closed), ignoreLease: true } },
          { delete: { key: store.layout.open(sid) } },
        ],
        failure: [],
      },
      timeoutMs,
    )
    const locks = await this.#client.range(store.layout.locks(), timeoutMs)
    for (const one of locks.kvs) {
      const parsed = store.layout.parse(one.key)
      if (parsed?.kind !== 'd' || one.lease === 0n || !parsed.request.startsWith(`${sid}.`)) continue
      await this.#repeated(
        {
          compare: [{ result: 0, target: 1, key: one.key, createRevision: one.createRevision }],
          success: await this.#delayOps(recordOf<HoldRecord>(one), parsed.request, timeoutMs),
          failure: [],
        },
        timeoutMs,
      )
    }
    await this.#client.leaseRevoke(kv.lease, timeoutMs)
  }

  async getRegister(key: string, options: { stale: boolean; timeoutMs: number }): Promise<EngineRegister | undefined> {
    await this.#store.ready(options.timeoutMs)
    const request = { key: this.#store.layout.register(key), ...(options.stale ? { serializable: true } : {}) }
    const [kv] = (await this.#client.range(request, options.timeoutMs)).kvs
    return kv === undefined ? undefined : registerOf(kv)
  }

  async *watch(options: { prefix: string; from?: Cursor; signal: AbortSignal }): AsyncGenerator<Item, void, void> {
    const controller = this.#platform.abortController()
    const stop = () => controller.abort()
    options.signal.addEventListener('abort', stop)
    if (options.signal.aborted) stop()
    this.#watches.add(controller)
    try {
      const from = await this.#position(options.from, controller.signal)
      if (from !== undefined)
        yield* watchStore(this.#store, { prefix: options.prefix, from, signal: controller.signal })
    } finally {
      this.#watches.delete(controller)
      options.signal.removeEventListener('abort', stop)
    }
  }

  close(): Promise<void> {
    for (const watch of this.#watches) watch.abort()
    for (const session of [...this.#sessions]) session.end('closed', new SessionEndedError('the client is closed'))
    this.#client.close()
    this.#listeners = []
    return Promise.resolve()
  }

  /** Where a watch begins; waits for etcd as long as it takes. Undefined: it was stopped before. */
  async #position(from: Cursor | undefined, signal: AbortSignal): Promise<Cursor | undefined> {
    while (!signal.aborted) {
      try {
        const epoch = await this.#store.ready(POSITION_TIMEOUT_MS)
        const { header } = await this.#client.range(
          { key: this.#store.layout.epoch, keysOnly: true },
          POSITION_TIMEOUT_MS,
        )
        const now = { epoch, index: header.revision as Index, ordinal: LAST_ORDINAL }
        if (from !== undefined && from.epoch === epoch && from.index > header.revision) {
          throw new WatchError(`etcd went back from revision ${from.index} to ${header.revision}: it was restored`)
        }
        return from ?? now
      } catch (error) {
        if (error instanceof AbortedError) return undefined
        if (!(error instanceof UnavailableError)) throw error
      }
    }
    return undefined
  }

  /** Restarts the lock delay of a hold now. */
  async #delayOps(record: HoldRecord, request: string, timeoutMs: number): Promise<Op[]> {
    if (record.delayMs === 0) return []
    const lease = await this.#client.leaseGrant(record.delayMs, timeoutMs)
    return record.locks.map(({ name }) => {
      return { put: { key: this.#store.layout.delay(name, request), value: bytesOf(record), lease } }
    })
  }

  async #repeated(request: TxnRequest, timeoutMs: number): Promise<{ succeeded: boolean; repeated: boolean }> {
    let repeated = false
    const options = { timeoutMs, repeatable: true, repeated: () => (repeated = true) }
    const { succeeded } = await this.#client.txn(request, options)
    return { succeeded, repeated }
  }

  #tell(status: EngineStatus): void {
    for (const listener of this.#listeners) {
      try {
        listener(status)
      } catch (error) {
        this.#platform.report('leasehold: a listener has thrown', error)
      }
    }
  }
}
