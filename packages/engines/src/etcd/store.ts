import type { ClientPlatform } from '@leasehold/client'
import { EpochChangedError, InvalidError, splitToken, UnavailableError } from '@leasehold/core'
import { type EtcdClient, RefusedByEtcd } from './api/client.js'
import { baseFor, clusterOf, recordCluster } from './serial-base.js'
import {
  bytesOf,
  type EpochRecord,
  type HoldRecord,
  Layout,
  type Numbering,
  type RequestRecord,
  recordOf,
  revisionOf,
  serialOf,
  type SessionRecord,
} from './layout.js'
import type { Compare, KeyValue, Op, OpResponse, TxnResponse } from './api/messages.js'
import { blockerOf, type LockView, type Plan, type PlannedGrant, planGrants } from './grant-plan.js'

/** Attempts to raise the base when several clients connect at the same time: one of them succeeds. */
const RAISE_ATTEMPTS_MAX = 10
/** Attempts to grant when other clients grant at the same time. */
const GRANT_ATTEMPTS_MAX = 30
/** Locks read for one attempt to grant: front waiters of several locks lead to further locks. */
const LOCKS_READ_MAX = 256
/** etcd takes 128 operations in a transaction. */
const OPS_MAX = 120

export interface Reading {
  readonly revision: number
  readonly locks: ReadonlyMap<string, LockView>
}

export interface GrantResult extends Reading {
  /** What was granted, at `revision`. */
  readonly grants: readonly PlannedGrant[]
  /** The base that it was granted with. */
  readonly base: number
}

export interface GrantTxnParts {
  readonly compare: Compare[]
  readonly success: Op[]
  readonly grants: readonly PlannedGrant[]
}

/** The lock state in etcd: consistent readings of locks, and the only code that grants them. */
export class Store {
  readonly layout: Layout
  readonly #firstEpoch: number
  /** Locks that were contended lately. */
  readonly contended: RecentContention
  #epoch: { readonly record: EpochRecord; readonly bytes: Buffer } | undefined
  #initializing: Promise<number> | undefined
  #warned = false
  /** The next serial must not be lower: earlier ones were granted. */
  #atLeast = 0
  /** Called when etcd was restored to an earlier revision. */
  onRevisionRegressed: (error: EpochChangedError) => void = () => {}

  constructor(
    readonly client: EtcdClient,
    prefix: string,
    firstEpoch: number,
    readonly platform: ClientPlatform,
  ) {
    this.#firstEpoch = firstEpoch
    this.layout = new Layout(prefix)
    // A service that was never ready reads everything before its first grant.
    client.onReconnect(async (timeoutMs) => {
      if (this.#epoch !== undefined) await this.#initialize(timeoutMs)
    })
    this.contended = new RecentContention(platform)
  }

  get epoch(): number {
    if (this.#epoch === undefined) throw new UnavailableError(`${this.client.name} was not connected yet`)
    return this.#epoch.record.epoch
  }

  get base(): number {
    return this.#epoch?.record.base ?? 0
  }

  /** The present epoch and base, of which ids are made. */
  get numbering(): Numbering {
    return { epoch: this.epoch, base: this.base }
  }

  /** Holds while epoch and base are those that this client knows. */
  get epochHolds(): Compare {
    return { result: 0, target: 3, key: this.layout.epoch, value: this.#epoch?.bytes ?? Buffer.alloc(0) }
  }

  /**
   * Makes sure that epoch and base are known, and initializes an empty etcd. They are read again when a lost
   * connection was replaced, since etcd may have been restored meanwhile.
   */
  ready(timeoutMs: number): Promise<number> {
    if (this.#epoch !== undefined) return Promise.resolve(this.#epoch.record.epoch)
    this.#initializing ??= this.#initialize(timeoutMs).finally(() => {
      this.#initializing = undefined
    })
    return this.#initializing
  }

  /** Forgets a raised epoch: the next call reads it again. */
  forgetEpoch(): void {
    this.#epoch = undefined
  }

  /** Takes over the epoch record as it was just read. Returns its epoch. */
  note(kv: KeyValue): number {
    const record = recordOf<EpochRecord>(kv)
    if (record.epoch === this.#epoch?.record.epoch) this.#epoch = { record, bytes: Buffer.from(kv.value) }
    return record.epoch
  }

  async #initialize(timeoutMs: number): Promise<number> {
    const key = this.layout.epoch
    for (let attempt = 1; attempt <= RAISE_ATTEMPTS_MAX; attempt++) {
      const { kvs, header } = await this.client.range({ key }, timeoutMs, true)
      this.#checkRevision(header.revision)
      const [found] = kvs
      const record = found === undefined ? undefined : recordOf<EpochRecord>(found)
      if (record !== undefined) this.#checkCluster(record, header.clusterId)
      const base = this.#baseFor(record, header.revision)
      if (found !== undefined && record !== undefined && base === undefined) {
        this.#epoch = { record, bytes: Buffer.from(found.value) }
        this.client.connected(record.epoch)
        return record.epoch
      }
      const epoch = record?.epoch ?? this.#firstEpoch
      const next: EpochRecord = { epoch, cluster: recordCluster(header.clusterId), base: base ?? record?.base ?? 0 }
      // One client wins; then every client reads the record again.
      const compare: Compare =
        found === undefined
          ? { result: 0, target: 1, key, createRevision: 0 }
          : { result: 0, target: 3, key, value: found.value }
      await this.client.txn(
        { compare: [compare], success: [{ put: { key, value: bytesOf(next) } }], failure: [] },
        { timeoutMs, repeatable: true, validates: true },
      )
    }
    throw new UnavailableError(`${this.client.name}: too many clients raise the base of its tokens at once`)
  }

  /**
   * etcd was restored, and this client knows revisions that it has lost: its tokens continue above those, and what this client
   * holds is lost.
   */
  #checkRevision(revision: number): void {
    const seen = this.client.seenRevision
    if (revision >= seen) return
    this.#atLeast = Math.max(this.#atLeast, serialOf({ base: this.base }, seen + 1))
    this.client.startOver(revision)
    this.onRevisionRegressed(
      new EpochChangedError(`etcd went back from revision ${seen} to ${revision}: it was restored`),
    )
  }

  #checkCluster(record: EpochRecord, clusterId: bigint): void {
    if (clusterOf(record) === String(clusterId)) return
    throw new EpochChangedError(
      `${this.client.name} is another etcd than the one in which epoch ${record.epoch} began`,
      {
        hint: 'it was restored from a backup: raise the epoch with `leasehold engines epoch N`, above every epoch ever used',
      },
    )
  }

  /** The base that this etcd needs; undefined: the present one suffices. */
  #baseFor(record: EpochRecord | undefined, revision: number): number | undefined {
    const base = baseFor(record?.base ?? 0, revision, this.platform.wallMs(), this.#atLeast)
    if (base !== 'implausible') return base
    if (record === undefined && this.#firstEpoch === 1) {
      throw new InvalidError(
        `the clock of this machine is implausible, and ${this.client.name} is empty: its tokens would start too low`,
        {
          hint: 'set the clock; or put ?epoch=N into the URL, above that of every service that this one replaces',
        },
      )
    }
    if (!this.#warned) {
      this.#warned = true
      this.platform.report(
        'leasehold: the clock of this machine is implausible: tokens are not raised to it, and could repeat after a restore of etcd',
        new InvalidError('set the clock, and connect again'),
      )
    }
    return undefined
  }

  /** A consistent reading of some locks. */
  async read(names: readonly string[], timeoutMs: number, revision?: number): Promise<Reading> {
    const ops = names.map((name): Op => {
      return { range: { ...this.layout.lock(name), ...(revision === undefined ? {} : { revision }) } }
    })
    const answer = await this.client.txn({ compare: [], success: ops, failure: [] }, { timeoutMs, repeatable: true })
    const locks = new Map(names.map((name, i) => [name, this.viewOf(name, kvsOf(answer.responses[i]))]))
    return { revision: revision ?? answer.header.revision, locks }
  }

  /** The same, with all locks that decide which requests can be granted. `without`: this request is leaving. */
  async readForGrants(
    names: readonly string[],
    timeoutMs: number,
    without?: string,
  ): Promise<Reading & { plan: Plan }> {
    const { revision, locks: first } = await this.read(names, timeoutMs)
    const locks = new Map<string, LockView>()
    const add = (more: ReadonlyMap<string, LockView>) => {
      for (const [name, view] of more) locks.set(name, leave(view, without))
    }
    add(first)
    for (;;) {
      const plan = planGrants(locks)
      if (plan.missing.length === 0 || locks.size + plan.missing.length > LOCKS_READ_MAX)
        return { revision, locks, plan }
      add((await this.read(plan.missing, timeoutMs, revision)).locks)
    }
  }

  /** Grants every request that can be granted around these locks. */
  async grantWaiters(names: readonly string[], timeoutMs: number): Promise<GrantResult> {
    for (let attempt = 1; ; attempt++) {
      await this.ready(timeoutMs)
      const reading = await this.readForGrants(names, timeoutMs)
      const { base } = this
      const { compare, success, grants } = this.parts(reading, reading.plan.grants)
      if (grants.length === 0) return { ...reading, grants, base }
      const answer = await this.#tryGrants(compare, success, timeoutMs)
      if (answer === 'impossible') return { ...reading, grants: [], base }
      if (answer.succeeded) return { ...reading, revision: answer.header.revision, grants, base }
      for (const kv of kvsOf(answer.responses[0])) this.note(kv)
      if (attempt >= GRANT_ATTEMPTS_MAX)
        throw new UnavailableError(`${names.join(', ')}: too many clients grant at once`)
      await this.revokeClosedSessions(grants, timeoutMs)
    }
  }

  /**
   * Ends the leases of closed sessions among these grants, which could not be made: their closer has not done it,
   * perhaps because it has died. Closed is final, and the closer is not needed for the rest:
   * the keys that block after a hold's end have a lease of their own.
   */
  async revokeClosedSessions(grants: readonly PlannedGrant[], timeoutMs: number): Promise<void> {
    const sids = new Set(grants.map(({ waiter }) => waiter.record.sid))
    const success = [...sids].map((sid): Op => ({ range: { key: this.layout.session(sid) } }))
    const answer = await this.client.txn({ compare: [], success, failure: [] }, { timeoutMs, repeatable: true })
    for (const kv of answer.responses.flatMap(kvsOf)) {
      if (recordOf<SessionRecord>(kv).state === 'closed') await this.client.leaseRevoke(kv.lease, timeoutMs)
    }
  }

  /** A repeat is harmless: after the first success the conditions no longer hold. */
  async #tryGrants(compare: Compare[], success: Op[], timeoutMs: number): Promise<TxnResponse | 'impossible'> {
    try {
      return await this.client.txn(
        { compare: [this.epochHolds, ...compare], success, failure: [{ range: { key: this.layout.epoch } }] },
        { timeoutMs, repeatable: true },
      )
    } catch (error) {
      // The lease of a waiter has expired: that session ends.
      if (error instanceof RefusedByEtcd) return 'impossible'
      throw error
    }
  }

  /**
   * The conditions and operations for these grants. A grant requires that the waiter's key exists, which expires with its
   * lease, and that no new blocker of its locks was written since they were read.
   */
  parts(reading: Reading, planned: readonly PlannedGrant[], opsUsed = 0): GrantTxnParts {
    const compare: Compare[] = []
    const success: Op[] = []
    const grants: PlannedGrant[] = []
    const touched = new Set<string>()
    for (const grant of planned) {
      const ops = this.grantOps(
        holdRecord(grant, this.platform.wallMs(), this.base),
        grant.waiter.request,
        grant.waiter.lease,
      )
      if (opsUsed + success.length + ops.length > OPS_MAX) break
      // Its session must not be closed: the lease of a closed session may live on for a moment.
      const open = this.layout.open(grant.waiter.record.sid)
      const checks: Compare[] = [{ result: 1, target: 1, key: open, createRevision: 0 }]
      for (const { name } of grant.waiter.record.locks) {
        const { request, createRevision } = grant.waiter
        checks.push({ result: 0, target: 1, key: this.layout.waiter(name, request), createRevision })
        checks.push({ result: 0, target: 1, key: this.layout.hold(name, request), createRevision: 0 })
        if (touched.has(name)) continue
        checks.push({ result: 2, target: 2, ...this.layout.blockers(name), modRevision: reading.revision + 1 })
      }
      for (const { name, blocker } of grant.companions) {
        const { request, createRevision } = blocker
        checks.push({ result: 0, target: 1, key: this.layout.hold(name, request), createRevision })
      }
      if (compare.length + checks.length > OPS_MAX) break
      for (const { name } of grant.waiter.record.locks) touched.add(name)
      compare.push(...checks)
      success.push(...ops)
      grants.push(grant)
    }
    return { compare, success, grants }
  }

  /** The keys of a hold. */
  grantOps(record: HoldRecord, request: string, lease: bigint): Op[] {
    const value = bytesOf(record)
    const ops: Op[] = record.locks.map(({ name }) => {
      return { put: { key: this.layout.hold(name, request), value, lease } }
    })
    if (record.delayMs === 0) return ops
    const delayLease = lease === 0n ? 0n : BigInt(record.delayLease)
    for (const { name } of record.locks) {
      ops.push({ put: { key: this.layout.delay(name, request), value, lease: delayLease } })
    }
    return ops
  }

  /** Deletes everything of a request. The holds' deletions come first. */
  leaveOps(names: readonly string[], request: string, hasDelay: boolean, hasWaited = true): Op[] {
    const ops: Op[] = names.map((name) => ({ delete: { key: this.layout.hold(name, request) } }))
    if (hasWaited) for (const name of names) ops.push({ delete: { key: this.layout.waiter(name, request) } })
    if (hasDelay) for (const name of names) ops.push({ delete: { key: this.layout.delay(name, request) } })
    return ops
  }

  /** The state of one lock by its keys. */
  viewOf(name: string, kvs: readonly KeyValue[]): LockView {
    const blockers: LockView['blockers'][number][] = []
    const waiters: LockView['waiters'][number][] = []
    for (const kv of kvs) {
      const parsed = this.layout.parse(kv.key)
      if (parsed?.kind === 'h' || parsed?.kind === 'd') {
        const record = recordOf<HoldRecord>(kv)
        blockers.push(blockerOf(parsed.kind === 'h' ? 'hold' : 'delay', name, parsed.request, record, kv))
      } else if (parsed?.kind === 'q') {
        const record = recordOf<RequestRecord>(kv)
        // A request of an older epoch is not granted any more: its token would be too low.
        if (record.epoch === this.epoch)
          waiters.push({ request: parsed.request, record, lease: kv.lease, createRevision: kv.createRevision })
      }
    }
    const holding = new Set(blockers.filter(({ kind }) => kind === 'hold').map(({ request }) => request))
    const waiting = waiters.filter(({ request }) => !holding.has(request))
    return { blockers, waiters: waiting.sort((a, b) => a.createRevision - b.createRevision) }
  }

  /**
   * The hold with this id; undefined: it has ended. Its revision follows from its id if it was made with the present
   * base; one that was made with a lower base has a higher revision.
   */
  async findHold(id: bigint, timeoutMs: number): Promise<FoundHold | undefined> {
    const { serial } = splitToken(id)
    const { revision } = revisionOf(this.numbering, serial)
    const last = revisionOf({ base: 0 }, serial).revision
    const spans = [
      { minCreateRevision: revision, maxCreateRevision: revision },
      { minCreateRevision: Math.max(1, revision + 1), maxCreateRevision: last },
    ]
    for (const span of spans) {
      if (span.minCreateRevision < 1 || span.maxCreateRevision < span.minCreateRevision) continue
      const { kvs } = await this.client.range({ ...this.layout.locks(), ...span }, timeoutMs)
      for (const kv of kvs) {
        const parsed = this.layout.parse(kv.key)
        if (parsed?.kind !== 'h') continue
        const record = recordOf<HoldRecord>(kv)
        if (BigInt(record.epoch) !== id >> 48n) continue
        if (serialOf(record, kv.createRevision, record.ordinal) !== serial) continue
        return { request: parsed.request, record, lease: kv.lease, revision: kv.createRevision }
      }
    }
    return undefined
  }
}

export interface FoundHold {
  readonly request: string
  readonly record: HoldRecord
  readonly lease: bigint
  readonly revision: number
}

/** `base`: that of the grant, not that of the waiter's request. */
export function holdRecord(
  grant: Pick<PlannedGrant, 'ordinal' | 'terms' | 'waiter'>,
  grantedAt: number,
  base: number,
): HoldRecord {
  return { ...grant.waiter.record, base, ordinal: grant.ordinal, terms: grant.terms, grantedAt }
}

export function kvsOf(response: OpResponse | undefined): readonly KeyValue[] {
  return response?.range?.kvs ?? []
}

/** A view without the request that leaves. Its delay does not count either: it is released cleanly. */
function leave(view: LockView, without: string | undefined): LockView {
  if (without === undefined) return view
  const stays = ({ request }: { request: string }) => request !== without
  return { blockers: view.blockers.filter(stays), waiters: view.waiters.filter(stays) }
}

const CONTENDED_MS = 5_000
const CONTENDED_NAMES_MAX = 10_000

/** Names with contention in the last seconds. A guess that saves time: nothing depends on it. */
export class RecentContention {
  readonly #platform: ClientPlatform
  readonly #met = new Map<string, number>()

  constructor(platform: ClientPlatform) {
    this.#platform = platform
  }

  add(names: readonly string[]): void {
    const now = this.#platform.monotonicMs()
    for (const name of names) {
      this.#met.delete(name)
      this.#met.set(name, now)
    }
    for (const [name, at] of this.#met) {
      if (this.#met.size <= CONTENDED_NAMES_MAX && now - at < CONTENDED_MS) break
      this.#met.delete(name)
    }
  }

  some(names: readonly string[]): boolean {
    const now = this.#platform.monotonicMs()
    return names.some((name) => now - (this.#met.get(name) ?? Number.NEGATIVE_INFINITY) < CONTENDED_MS)
  }
}
