import { type Limits, LockState } from '@leasehold/core'
import { inspect, type Replica } from '@leasehold/replica'
import { BeliefChecker } from './belief-checker.js'
import { type Canonical, CommittedLog } from './committed-log.js'
import { GrantChecker } from './grant-checker.js'
import { MarkChecker } from './mark-checker.js'
import { QueueChecker } from './queue-checker.js'
import { RegisterChecker } from './register-checker.js'
import { PersistedPromiseChecker } from './persisted-promise-checker.js'
import { RequestChecker } from './request-checker.js'
import { SessionChecker } from './session-checker.js'
import type { TokenPairs } from './token-pairs.js'
import { Violations } from './violation.js'
import { WatchChecker } from './watch-checker.js'

export interface ClusterCheckersOptions {
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
export class ClusterCheckers {
  readonly violations: Violations
  readonly grants: GrantChecker
  readonly queues: QueueChecker
  readonly registers: RegisterChecker
  readonly marks: MarkChecker
  readonly requests: RequestChecker
  readonly sessions: SessionChecker
  readonly beliefs: BeliefChecker
  readonly watches: WatchChecker
  readonly promises: PersistedPromiseChecker
  log: CommittedLog
  readonly #onEntry: ((canonical: Canonical) => void) | undefined

  constructor(options: ClusterCheckersOptions) {
    const { nowMs, epoch, limits, founding = LockState.create(limits ? { epoch, limits } : { epoch }) } = options
    this.#onEntry = options.onEntry
    this.violations = new Violations(nowMs)
    this.grants = new GrantChecker(this.violations, epoch, options.pairs)
    this.queues = new QueueChecker(this.violations, this.grants, (name) => {
      return (this.log.state.machine.locks.get(name)?.delays?.size ?? 0) > 0
    })
    this.registers = new RegisterChecker(this.violations)
    this.marks = new MarkChecker(this.violations)
    this.requests = new RequestChecker(this.violations)
    this.sessions = new SessionChecker(this.violations, nowMs)
    this.beliefs = new BeliefChecker(this.violations, nowMs)
    this.watches = new WatchChecker(this.violations)
    this.promises = new PersistedPromiseChecker(this.violations)
    this.log = new CommittedLog(this.violations, founding, (one) => this.#entry(one))
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
    this.log = new CommittedLog(this.violations, state, (one) => this.#entry(one), base)
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

  #entry(canonical: Canonical): void {
    const { applied, entry, index } = canonical
    this.requests.entry(entry.commands, applied.results, applied.pushes)
    this.grants.entry(applied.events)
    this.queues.entry(entry.commands, applied.events)
    this.registers.entry(entry.commands, applied.results, applied.events)
    this.beliefs.entry(applied.events)
    this.sessions.entry(applied.events)
    this.watches.entry(index, applied.events)
    for (const event of applied.events) if (event.kind === 'sessionEnded') this.requests.ended(event.session)
    this.#onEntry?.(canonical)
  }
}

/** A member that stops because of its disk does what it should. */
function isBug(failure: string): boolean {
  const expected =
    /EIO|EROFS|ENOENT|no space left|is damaged|was taken over|no room|the data folder \S+ is gone|was set back/
  return !expected.test(failure)
}
