import {
  countsOf,
  type Event,
  FLOOR_PER_MS,
  floorAt,
  CompactingMap,
  type HoldId,
  type LockState,
  type SessionId,
} from '@leasehold/core'
import type { AppliedBatch, Member, MemberStatus } from '@leasehold/replica'
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { BatchedCounter } from './batched-counter.js'

/** Holds and waits whose start is kept, to measure how long they took; further ones are only counted. */
const TIMED_MAX = 200_000
/** Default metrics whose names Prometheus refuses: gauges with the suffix of a counter. Each also exists by type, well named. */
const MISNAMED = ['handles', 'requests', 'resources'].map((name) => `leasehold_nodejs_active_${name}_total`)
const FSYNC_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const TIME_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800]
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]

const ROLES = ['leader', 'follower', 'candidate', 'learner', 'stopped'] as const

/** The Prometheus metrics of a member. Counters of applied entries are equal on every member; all others are its own. */
export class Metrics {
  readonly #member: Member<LockState>
  readonly #registry = new Registry()
  readonly #requests = this.#counter('requests_total', 'Operations requested by clients', 'operation')
  readonly #refused = this.#counter('requests_refused_total', 'Requests that were refused, by error code', 'code')
  readonly #entries = this.#counter('entries_applied_total', 'Log entries that were applied')
  readonly #commands = this.#counter('commands_applied_total', 'Commands that were applied')
  readonly #grants = this.#counter('grants_total', 'Holds that were granted')
  readonly #ends = this.#counter('holds_ended_total', 'Holds that ended, by reason', 'reason')
  readonly #sessionEnds = this.#counter('sessions_ended_total', 'Sessions that ended, by reason', 'reason')
  readonly #elections = this.#counter('elections_total', 'Term changes that this member has observed')
  readonly #batch = this.#histogram('batch_commands', 'Commands per log entry', BATCH_BUCKETS)
  readonly #fsync = this.#histogram('fsync_seconds', 'Time until one write to the log was durable', FSYNC_BUCKETS)
  readonly #wait = this.#histogram('wait_seconds', 'Time that granted acquires spent in a queue', TIME_BUCKETS)
  readonly #hold = this.#histogram('hold_seconds', 'Time from the grant of a hold to its end', TIME_BUCKETS)
  readonly #heldAt = new CompactingMap<HoldId, number>()
  readonly #queuedAt = new CompactingMap<string, number>()
  readonly #stops: (() => void)[]
  /** Grants in the current batch. */
  #granted = 0
  #term: number

  constructor(member: Member<LockState>, connections: () => { readonly streams: number; readonly waiting: number }) {
    this.#member = member
    this.#term = member.status.term
    collectDefaultMetrics({ register: this.#registry, prefix: 'leasehold_' })
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name)
    this.#gauges(connections)
    this.#stops = [
      member.onApplied((batch) => this.#observeBatch(batch)),
      member.onStatus((status) => this.#observeStatus(status)),
    ]
  }

  /** @param operation a name from the source code, never text of a client: the number of labels must be bounded */
  countRequest(operation: string): void {
    this.#requests.add(1, operation)
  }

  countRefusal(code: string): void {
    this.#refused.add(1, code)
  }

  observeFsync(seconds: number): void {
    this.#fsync.observe(seconds)
  }

  /** The metrics in the text format of Prometheus, and its content type. */
  async text(): Promise<{ readonly body: string; readonly type: string }> {
    return { body: await this.#registry.metrics(), type: this.#registry.contentType }
  }

  close(): void {
    for (const stop of this.#stops) stop()
    this.#registry.clear()
  }

  #counter(name: string, help: string, label?: string): BatchedCounter {
    return new BatchedCounter(this.#registry, `leasehold_${name}`, help, label)
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name: `leasehold_${name}`, help, buckets, registers: [this.#registry] })
  }

  #gauge(name: string, help: string, value: () => number): void {
    const registers = [this.#registry]
    new Gauge({
      name: `leasehold_${name}`,
      help,
      registers,
      collect() {
        this.set(value())
      },
    })
  }

  #gauges(connections: () => { readonly streams: number; readonly waiting: number }): void {
    const member = this.#member
    const counts = () => countsOf(member.stale().state)
    this.#gauge('sessions', 'Sessions', () => counts().sessions)
    this.#gauge('holds', 'Holds', () => counts().holds)
    this.#gauge('waiters', 'Acquires in a queue', () => counts().waiters)
    this.#gauge('delays', 'Active lock delays', () => counts().delays)
    this.#gauge('locks', 'Locks with a hold, a waiter or a delay', () => counts().locks)
    this.#gauge('registers', 'Registers', () => counts().registers)
    this.#gauge('streams', 'Open streams of clients', () => connections().streams)
    this.#gauge('http_waiting', 'Waiting acquires over HTTP', () => connections().waiting)
    this.#gauge('term', 'Raft term', () => member.status.term)
    this.#gauge('commit_index', 'Index of the last committed entry', () => member.status.commitIndex)
    this.#gauge('applied_index', 'Index of the last applied entry', () => member.status.appliedIndex)
    this.#gauge('apply_lag_entries', 'Entries that are committed but not applied yet', () => {
      return member.status.commitIndex - member.status.appliedIndex
    })
    this.#gauge('epoch', 'Epoch of the service', () => member.status.epoch)
    this.#gauge(
      'tokens_ahead_seconds',
      'How far the token counter is ahead of the floor that the clock gives; below 0: behind',
      () => {
        const floor = floorAt(Date.now())
        return floor === undefined ? Number.NaN : (member.stale().state.counter - floor) / FLOOR_PER_MS / 1000
      },
    )
    this.#gauge('has_leader', '1 while a leader is known', () => Number(member.status.leader !== ''))
    this.#gauge('disk_full', '1 while the disk has no space for new log files', () =>
      Number(member.status.disk === 'full'),
    )
    const registers = [this.#registry]
    new Gauge({
      name: 'leasehold_role',
      help: '1 for the current role of this member',
      labelNames: ['role'],
      registers,
      collect() {
        for (const role of ROLES) this.set({ role }, Number(member.status.role === role))
      },
    })
  }

  #observeStatus({ term }: MemberStatus): void {
    if (term > this.#term) this.#elections.add(term - this.#term)
    this.#term = term
  }

  #observeBatch({ commands, pushes, events }: AppliedBatch): void {
    this.#entries.add(1)
    if (commands > 0) {
      this.#commands.add(commands)
      this.#batch.observe(commands)
    }
    const now = performance.now()
    for (const { session, change } of pushes) {
      if (change?.kind === 'granted')
        this.#observeSince(this.#wait, this.#queuedAt, waiterKey(session, change.request), now)
    }
    for (const event of events) this.#observeEvent(event, now)
    if (this.#granted > 0) this.#grants.add(this.#granted)
    this.#granted = 0
  }

  #observeEvent(event: Event, now: number): void {
    switch (event.kind) {
      case 'held':
        this.#granted += 1
        if (this.#heldAt.size < TIMED_MAX) this.#heldAt.set(event.grant.hold, now)
        break
      case 'freed':
        this.#ends.add(1, event.reason)
        this.#observeSince(this.#hold, this.#heldAt, event.hold, now)
        break
      case 'queued':
        if (this.#queuedAt.size < TIMED_MAX) this.#queuedAt.set(waiterKey(event.session, event.request), now)
        break
      case 'unqueued':
        this.#queuedAt.delete(waiterKey(event.session, event.request))
        break
      case 'sessionEnded':
        this.#sessionEnds.add(1, event.reason)
        break
      default:
    }
  }

  #observeSince<K>(histogram: Histogram, starts: CompactingMap<K, number>, key: K, now: number): void {
    const from = starts.get(key)
    if (from === undefined) return
    starts.delete(key)
    histogram.observe((now - from) / 1000)
  }
}

function waiterKey(session: SessionId, request: number): string {
  return `${session}/${request}`
}
