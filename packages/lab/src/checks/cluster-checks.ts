import { type Limits, LockState } from '@leasehold/core'
import { inspect, type Replica } from '@leasehold/replica'
import { BeliefChecks } from './beliefs.js'
import { type Canonical, CommittedLog } from './committed.js'
import { GrantChecks } from './grants.js'
import { MarkChecks } from './marks.js'
import { QueueChecks } from './queues.js'
import { RegisterChecks } from './registers.js'
import { PromiseChecks } from './promises.js'
import { RequestChecks } from './requests.js'
import { SessionChecks } from './sessions.js'
import type { TokenPairs } from './token-pairs.js'
import { Violations } from './violation.js'
import { WatchChecks } from './watches.js'

export interface ClusterChecksOptions {
  readonly nowMs: () => number
  readonly epoch: number
  /** The state that the service is founded with; default: an empty one of this epoch, without a floor. */
  readonly founding?: LockState
  readonly limits?: Partial<Limits>
  /** Tokens of other services, where this one follows them. */
  readonly pairs?: TokenPairs
  /** Hears of every entry, when the first member has applied it. */
  readonly onEntry?: (canonical: Canonical) => void
}

/**
 * Everything that must hold of a cluster and its clients at every step. Each check costs the same at every entry,
 * however large the state is.
 */
export class ClusterChecks {
  readonly violations: Violations
  readonly grants: GrantChecks
  readonly queues: QueueChecks
  readonly registers: RegisterChecks
  readonly marks: MarkChecks
  readonly requests: RequestChecks
  readonly sessions: SessionChecks
  readonly beliefs: BeliefChecks
  readonly watches: WatchChecks
  readonly promises: PromiseChecks
  log: CommittedLog
  private readonly onEntry: ((canonical: Canonical) => void) | undefined

  constructor(options: ClusterChecksOptions) {
    const { nowMs, epoch, limits, founding = LockState.create(limits ? { epoch, limits } : { epoch }) } = options
    this.onEntry = options.onEntry
    this.violations = new Violations(nowMs)
    this.grants = new GrantChecks(this.violations, epoch, options.pairs)
    this.queues = new QueueChecks(this.violations, this.grants, (name) => {
      return (this.log.state.machine.locks.get(name)?.delays?.size ?? 0) > 0
    })
    this.registers = new RegisterChecks(this.violations)
    this.marks = new MarkChecks(this.violations)
    this.requests = new RequestChecks(this.violations)
    this.sessions = new SessionChecks(this.violations, nowMs)
    this.beliefs = new BeliefChecks(this.violations, nowMs)
    this.watches = new WatchChecks(this.violations)
    this.promises = new PromiseChecks(this.violations)
    this.log = new CommittedLog(this.violations, founding, (one) => this.entry(one))
  }

  /** Entries that were checked. */
  get entries(): number {
    return this.log.last
  }

  /** The service begins again, from a backup under a higher epoch or from nothing: a new log begins after it. */
  restored(state: LockState, base: { readonly index: number; readonly term: number }): void {
    this.grants.restored(state)
    this.queues.restored()
    this.requests.restored()
    this.registers.restored()
    this.beliefs.clear()
    this.sessions.restored()
    this.watches.restored()
    this.log = new CommittedLog(this.violations, state, (one) => this.entry(one), base)
  }

  /** A member has opened its folder. Returns what ends the watching. */
  attach(name: string, replica: Replica): () => void {
    const begin = inspect(replica)
    this.promises.begins(name, begin.raft)
    this.log.begins(name, begin.applied.index, begin.applied.term, begin.state.hash(), begin.entry)
    let applied = begin.applied.index
    let committed = applied
    let said = ''
    const offApplied = replica.onApplied(({ index }) => {
      const inside = inspect(replica)
      const hash = inside.state.hash()
      // A jump is a snapshot of the leader, installed in one piece.
      if (index > applied + 1) this.log.begins(name, index, inside.applied.term, hash, inside.entry)
      else if (index === applied + 1) this.log.applied(name, index, inside.applied.term, hash, inside.entry)
      else this.violations.report('L3', `${name} applied entry ${index} after ${applied}`)
      applied = index
    })
    const offIdle = replica.onIdle(() => {
      const { raft, termAt } = inspect(replica)
      for (committed = Math.max(committed, raft.first - 1); committed < raft.commit; ) {
        const term = termAt(++committed)
        if (term !== undefined) this.log.isCommitted(name, committed, term)
      }
    })
    const offStatus = replica.onStatus(({ role, term, failure }) => {
      if (role === 'leader') this.log.leads(name, term)
      if (failure !== undefined && failure !== said && isBug(failure)) this.violations.report('L4', failure)
      said = failure ?? ''
    })
    return () => {
      offApplied()
      offIdle()
      offStatus()
    }
  }

  private entry(canonical: Canonical): void {
    const { applied, entry, index } = canonical
    this.requests.entry(entry.commands, applied.results, applied.pushes)
    this.grants.entry(applied.events)
    this.queues.entry(entry.commands, applied.events)
    this.registers.entry(entry.commands, applied.results, applied.events)
    this.beliefs.entry(applied.events)
    this.sessions.entry(applied.events)
    this.watches.entry(index, applied.events)
    for (const event of applied.events) if (event.kind === 'sessionEnded') this.requests.ended(event.session)
    this.onEntry?.(canonical)
  }
}

/** A member that stops because of its disk does what it should. */
function isBug(failure: string): boolean {
  const expected =
    /EIO|EROFS|ENOENT|no space left|is damaged|was taken over|no room|the data folder \S+ is gone|was set back/
  return !expected.test(failure)
}
