import {
  type Command,
  type Cursor,
  type Index,
  LockState,
  type Refused,
  type Result,
  StorageError,
} from '@leasehold/core'
import type { AppliedBatch, Member, MemberStatus, ReadView } from './api.js'
import { assert } from './assert.js'
import { Applier } from './driver/applier.js'
import type { Consensus, Effects } from './driver/consensus.js'
import { Flusher } from './driver/flusher.js'
import { LeaderClock } from './driver/leader-clock.js'
import { guarded, Listeners } from './driver/listeners.js'
import { type ReplicaOptions, type ReplicaSettings, settingsOf } from './driver/options.js'
import { type Answer, mintSecrets, needsRoom, Proposals, refused } from './driver/proposals.js'
import { type Reader, Reads, READS_MAX } from './driver/reads.js'
import { Solo } from './driver/solo.js'
import { Stamps } from './driver/stamps.js'
import { Tenure } from './driver/tenure.js'
import { foundFolder } from './founding.js'
import { type ClusterMeta, decodeMeta, encodeMeta } from './members.js'
import { isFounded, openStorage, type Storage } from './storage.js'

/** Entries that were proposed and are not yet applied. */
const IN_FLIGHT_MAX = 256
/** Most bytes of commands in one entry, unless a log file is small. */
const BATCH_BYTES_MAX = 1024 * 1024
/** Rounds of effects in one go; more mean that the core never comes to rest. */
const ROUNDS_MAX = 10_000
/** A graceful stop waits this long for commands without an outcome. */
const STOP_WAIT_MS = 2000
/** While the disk is full, room is looked for this often. */
const ROOM_RETRY_MS = 1000

/**
 * One member: drives consensus, the lock state, the log and the snapshots over a {@link Platform}.
 *
 * States: running → stopping (`stop` was called; what is under way comes to its end) → stopped. A broken invariant or a
 * failed write leads to stopped at once, with `status.failure`. Within running it is leader, follower, … as consensus
 * says; as leader it is *ready* once the first entry of its term is applied.
 */
export class Replica implements Member<LockState> {
  private readonly consensus: Consensus
  private readonly flusher: Flusher
  private readonly applier: Applier
  private readonly proposals = new Proposals()
  private readonly onAppliedListeners: Listeners<[AppliedBatch]>
  private readonly onIdleListeners: Listeners<[]>
  private readonly onStatusListeners: Listeners<[MemberStatus]>
  private readonly batchBytes: number
  private readonly stamps = new Stamps()
  private readonly reads = new Reads()

  private phase: 'running' | 'stopping' | 'stopped' = 'running'
  private failure: string | undefined
  private tenure: Tenure | undefined
  private meta: ClusterMeta
  private lastSnapshot: number
  private saving = false
  private localSessionsEnded = false

  private running = false
  private closing = false
  private cancelKick: (() => void) | undefined
  private cancelTick: (() => void) | undefined
  private cancelDue: (() => void) | undefined
  private later: (() => void)[] = []
  private roomRetryAt = 0
  private lastStatus = ''
  private stopped: (() => void)[] = []
  private stopDeadline: number | undefined

  /**
   * Opens a member's data folder, or founds it. `done` never runs inside the call; it gets a StorageError on damage or a
   * broken or full disk, and an InvalidError on wrong options.
   */
  static open(options: ReplicaOptions, done: (error: Error | undefined, replica?: Replica) => void): void {
    const { platform } = options
    const finish = (error: Error | undefined, replica?: Replica): void => {
      platform.clock.after(0, () => done(error, replica))
    }
    let replica: Replica | undefined
    try {
      const settings = settingsOf(options)
      const open = (): void => {
        const storageOptions = { ...settings, changed: () => replica?.roomChanged() }
        openStorage(platform.disk, storageOptions, (error, storage) => {
          if (!storage) return finish(error)
          try {
            replica = new Replica(settings, storage)
            finish(undefined, replica)
          } catch (failed) {
            storage.log.close()
            storage.snapshots.close()
            finish(failed as Error)
          }
        })
      }
      if (isFounded(platform.disk)) open()
      else foundFolder(settings, (error) => (error ? finish(error) : open()))
    } catch (error) {
      finish(error as Error)
    }
  }

  private constructor(
    private readonly settings: ReplicaSettings,
    private readonly storage: Storage,
  ) {
    const { platform } = settings
    const { snapshot, log, identity } = storage
    this.meta = decodeMeta(snapshot.meta)
    this.lastSnapshot = snapshot.index
    const state = LockState.restore(snapshot.state)
    this.applier = new Applier(state, snapshot.index, snapshot.term, {
      events: settings.historyEvents,
      bytes: settings.historyBytes,
    })
    this.batchBytes = Math.min(BATCH_BYTES_MAX, Math.floor(log.frameRoom / 2))
    this.onAppliedListeners = new Listeners(platform.log)
    this.onIdleListeners = new Listeners(platform.log)
    this.onStatusListeners = new Listeners(platform.log)
    this.flusher = new Flusher({
      log,
      clock: platform.clock,
      blocking: settings.blockingWrites,
      done: (sequence, error) => this.guard(() => this.flushed(sequence, error)),
    })
    this.consensus = new Solo({
      node: identity.node,
      snapshot: { index: snapshot.index, term: snapshot.term, configuration: this.meta.configuration },
      hardState: log.hardState,
      entries: log.recovered,
    })
    this.stamps.note(log.recovered)
    this.consensus.campaign()
    this.kick()
    this.scheduleTick()
  }

  get status(): MemberStatus {
    const { identity } = this.storage
    const leader = this.phase === 'stopped' ? 0 : this.consensus.leader
    const info = this.meta.members.find((member) => member.node === leader)
    return {
      cluster: identity.cluster,
      epoch: this.applier.state.epoch,
      member: identity.name,
      role: this.phase === 'stopped' ? 'stopped' : this.consensus.role,
      leader: info?.name ?? '',
      leaderUrl: leader === identity.node ? this.settings.url : (info?.url ?? ''),
      term: this.consensus.term,
      commitIndex: this.consensus.commit,
      appliedIndex: this.applier.index,
      disk: this.full ? 'full' : 'ok',
      failure: this.failure,
    }
  }

  submit(command: Command, done: (result: Result) => void): void {
    const refusal = this.refusalOf(command)
    if (refusal) return this.defer(() => done(refusal))
    const unfit = this.proposals.add(mintSecrets(command, this.settings.platform.random), done, this.batchBytes)
    if (unfit) return this.defer(() => done(unfit))
    this.kick()
  }

  read(done: Reader): void {
    const refusal =
      this.phase !== 'running'
        ? this.stoppedRefusal()
        : this.consensus.role !== 'leader'
          ? this.notLeader()
          : this.reads.count >= READS_MAX
            ? refused('limit', `${this.reads.count} reads wait already`)
            : undefined
    if (refusal) return this.defer(() => done({ refused: refusal }))
    this.reads.add(done)
    this.kick()
  }

  stale(): ReadView<LockState> {
    return { state: this.applier.state, index: this.applier.index }
  }

  onApplied(listener: (batch: AppliedBatch) => void): () => void {
    return this.onAppliedListeners.add(listener)
  }

  onIdle(listener: () => void): () => void {
    return this.onIdleListeners.add(listener)
  }

  onStatus(listener: (status: MemberStatus) => void): () => void {
    return this.onStatusListeners.add(listener)
  }

  history(from: Cursor): ReturnType<Member<LockState>['history']> {
    return this.applier.since(from)
  }

  stop(done: () => void): void {
    this.stopped.push(done)
    if (this.phase === 'running') {
      this.phase = 'stopping'
      this.stopDeadline = this.settings.platform.clock.monotonicMs() + STOP_WAIT_MS
    }
    this.kick()
  }

  /** Stops at once, because going on could do harm; `status.failure` says why. */
  abandon(why: string): void {
    this.guard(() => {
      throw new StorageError(why)
    })
  }

  // --- the loop ---

  /** Closes the open batch at the next turn, so that everything that arrives in this one goes together. */
  private kick(): void {
    this.cancelKick ??= this.settings.platform.clock.after(0, () => {
      this.cancelKick = undefined
      this.guard(() => {
        this.closing = true
        this.advance()
      })
    })
  }

  /** Runs `action` after the present call. */
  private defer(action: () => void): void {
    this.later.push(action)
    this.kick()
  }

  private scheduleTick(): void {
    const { clock } = this.settings.platform
    this.cancelTick = clock.after(this.settings.tickMs, () => {
      this.scheduleTick()
      this.guard(() => this.tick())
    })
  }

  private tick(): void {
    const now = this.settings.platform.clock.monotonicMs()
    this.tenure?.clock.read(now)
    this.consensus.tick()
    if (this.full && now >= this.roomRetryAt) {
      this.roomRetryAt = now + ROOM_RETRY_MS
      this.storage.log.prepare()
      this.storage.snapshots.prepare()
    }
    this.closing = true
    this.advance()
  }

  private flushed(sequence: number, error: Error | undefined): void {
    if (error) throw error
    this.consensus.persisted(sequence)
    this.closing = true
    this.advance()
  }

  /** Carries out what consensus wants until there is nothing more to do. */
  private advance(): void {
    if (this.running || this.phase === 'stopped') return
    this.running = true
    let applied = false
    try {
      for (let round = 0, more = true; more; round++) {
        assert(round < ROUNDS_MAX, () => `${round} rounds of effects`)
        const single = this.closeBatch()
        const asked = this.tenure?.ready ? this.reads.begin() : undefined
        if (asked !== undefined) this.consensus.read(asked)
        const effects = this.consensus.takeEffects()
        more = this.flush(effects, single)
        more = this.applyCommitted(effects) || more
        applied ||= effects.committed.length > 0
        for (const { context, index } of effects.reads) this.reads.confirm(context, index)
        more = this.changeRole() || more
        for (const reader of this.reads.ready(this.applier.index))
          guarded(this.settings.platform.log, () => reader(this.stale()))
      }
    } finally {
      this.running = false
    }
    this.closing = false
    if (this.tenure?.ready && this.flusher.idle && (this.proposals.count > 0 || this.reads.count > 0)) this.kick()
    this.handOutLater()
    if (applied) this.onIdleListeners.call()
    this.maybeSnapshot()
    this.armDue()
    this.tellStatus()
    this.checkStopping()
  }

  /** Proposes the open batch, or an empty entry if time must move. Returns whether it is a single operation. */
  private closeBatch(): boolean {
    const { tenure } = this
    if (!this.closing || !tenure?.ready || !this.flusher.idle || tenure.waiting.size >= IN_FLIGHT_MAX) return false
    const now = this.settings.platform.clock.monotonicMs()
    const { state } = this.applier
    const count = this.proposals.count
    if (count === 0 && !tenure.wantsStamp(now, state.nextDue(), state.busy)) return false
    this.closing = false
    const { data, answers } = this.proposals.close(tenure.stamp(now, state.now), this.batchBytes)
    const index = this.consensus.propose(data)
    assert(index !== undefined, () => `the leader of term ${tenure.term} did not take an entry of ${data.length} bytes`)
    tenure.waiting.set(index as Index, answers)
    return count === 1
  }

  /** Returns whether something became durable at once. */
  private flush(effects: Effects, single: boolean): boolean {
    if (effects.persist) {
      this.stamps.note(effects.persist.entries)
      this.flusher.add(effects.persist)
    }
    const sequence = this.flusher.start(single && effects.committed.length === 0)
    if (sequence === undefined) return false
    this.consensus.persisted(sequence)
    return true
  }

  private applyCommitted(effects: Effects): boolean {
    for (const entry of effects.committed) {
      const { batch, results } = this.applier.apply(entry)
      this.stamps.applied(entry.index)
      if (entry.kind === 'configuration') this.consensus.applyConfiguration(entry.change)
      this.onAppliedListeners.call(batch)
      const answers = this.tenure?.waiting.get(batch.index)
      if (answers && this.tenure) {
        this.tenure.waiting.delete(batch.index)
        assert(answers.length === results.length, () => `${results.length} results for ${answers.length} commands`)
        answers.forEach((answer, i) => guarded(this.settings.platform.log, () => answer(results[i] as Result)))
      }
      if (this.tenure && batch.index === this.tenure.opening && entry.term === this.tenure.term) {
        this.tenure.ready = true
        this.closing = true
        if (this.settings.endLocalSessions && !this.localSessionsEnded) this.endLocalSessions()
      }
    }
    if (effects.committed.length > 0) this.consensus.applied(this.applier.index)
    return effects.committed.length > 0
  }

  // --- leadership ---

  /** Follows consensus into a term as leader, or out of it. Returns whether an entry was proposed. */
  private changeRole(): boolean {
    const { role, term } = this.consensus
    if (this.tenure && (role !== 'leader' || this.tenure.term !== term)) this.endTenure(this.notLeader())
    if (role !== 'leader' || this.tenure) return false
    const base = this.stamps.highest(this.applier.state.now)
    const clock = new LeaderClock(base, this.settings.platform.clock.monotonicMs(), this.settings.tickMs)
    const opening = this.consensus.propose(new Proposals().close(clock.stamp(0, base), 0).data)
    assert(opening !== undefined, () => `the leader of term ${term} did not take its first entry`)
    this.tenure = new Tenure(term, opening as Index, clock, base)
    this.settings.platform.log.info('leads', { term, index: opening })
    return true
  }

  /** Once per start, before anybody else's command: whoever lived in the process before is dead. */
  private endLocalSessions(): void {
    this.localSessionsEnded = true
    const reason = 'its process has ended'
    for (const session of this.applier.state.localSessions()) {
      this.proposals.addFirst({ kind: 'closeSession', session, by: 'death', reason })
    }
  }

  private endTenure(refusal: Refused): void {
    const { tenure } = this
    this.tenure = undefined
    const lost = refused(
      'unknown-outcome',
      'leadership was lost before the outcome was known',
      'repeat it with the same request number',
    )
    for (const answers of tenure?.waiting.values() ?? []) this.answerAll(answers, lost)
    this.answerAll(this.proposals.drain(), refusal)
    for (const reader of this.reads.drain()) this.later.push(() => reader({ refused: refusal }))
  }

  /** A timer for what is due before the next tick. */
  private armDue(): void {
    this.cancelDue?.()
    this.cancelDue = undefined
    const due = this.applier.state.nextDue()
    if (!this.tenure?.ready || due === undefined || this.tenure.lastStamp >= due) return
    const { clock } = this.settings.platform
    const delay = Math.max(1, due - this.tenure.clock.read(clock.monotonicMs()))
    if (delay >= this.settings.tickMs) return
    this.cancelDue = clock.after(delay, () => {
      this.cancelDue = undefined
      this.guard(() => {
        this.closing = true
        this.advance()
      })
    })
  }

  // --- refusals ---

  private refusalOf(command: Command): Refused | undefined {
    if (this.phase !== 'running') return this.stoppedRefusal()
    if (this.consensus.role !== 'leader') return this.notLeader()
    if (this.full && needsRoom(command)) {
      return refused(
        'storage',
        `the disk of ${this.settings.name} is full: ${command.kind} is refused`,
        'release, renew and close go on; make room',
      )
    }
    return undefined
  }

  private stoppedRefusal(): Refused {
    return this.failure === undefined
      ? refused('no-quorum', `member ${this.settings.name} is stopping`)
      : refused('storage', `member ${this.settings.name} has stopped: ${this.failure}`)
  }

  private notLeader(): Refused {
    return refused('no-quorum', `member ${this.settings.name} does not lead`)
  }

  private answerAll(answers: readonly Answer[], result: Result): void {
    for (const answer of answers) this.later.push(() => answer(result))
  }

  private handOutLater(): void {
    const { later } = this
    if (later.length === 0) return
    this.later = []
    for (const action of later) guarded(this.settings.platform.log, action)
  }

  // --- disk ---

  private get full(): boolean {
    return this.storage.log.full || this.storage.snapshots.full
  }

  private roomChanged(): void {
    this.guard(() => {
      const failure = this.storage.log.failure ?? this.storage.snapshots.failure
      if (failure) throw failure
      this.tellStatus()
      this.checkStopping()
    })
  }

  /** Cuts the log with a snapshot when it has grown enough. */
  private maybeSnapshot(): void {
    const { snapshots, log } = this.storage
    const bound = this.full ? this.settings.segmentBytes : Math.max(this.settings.snapshotBytes, snapshots.lastBytes)
    const { index, term, state } = this.applier
    if (
      this.saving ||
      this.phase !== 'running' ||
      this.applier.bytesSinceSnapshot < bound ||
      index <= this.lastSnapshot
    )
      return
    this.saving = true
    this.applier.bytesSinceSnapshot = 0
    const meta = encodeMeta({ ...this.meta, configuration: this.consensus.configuration })
    snapshots.save({ index, term, meta, state: state.snapshot() }, (error) => {
      this.guard(() => {
        this.saving = false
        if (snapshots.failure) throw snapshots.failure
        if (error) return this.settings.platform.log.warn('no room for a snapshot', { index })
        this.lastSnapshot = index
        log.compact(snapshots.cut)
        this.consensus.compact(snapshots.cut)
        this.checkStopping()
      })
    })
  }

  // --- the end ---

  /** A graceful stop comes to its end when nothing is under way any more, or after its time. */
  private checkStopping(): void {
    if (this.phase === 'stopped') return this.answerStopped()
    if (this.phase !== 'stopping' || !this.flusher.idle || this.saving) return
    const waits = this.proposals.count > 0 || (this.tenure?.waiting.size ?? 0) > 0
    const now = this.settings.platform.clock.monotonicMs()
    if (waits && this.tenure && now < (this.stopDeadline ?? 0)) return
    this.halt()
  }

  private answerStopped(): void {
    if (!this.storage.log.quiet || !this.storage.snapshots.quiet) return
    const { stopped } = this
    this.stopped = []
    if (stopped.length === 0) return
    this.settings.release(() => {
      for (const done of stopped) this.settings.platform.clock.after(0, done)
    })
  }

  private halt(): void {
    this.phase = 'stopped'
    this.cancelTick?.()
    this.cancelDue?.()
    this.endTenure(this.stoppedRefusal())
    this.storage.log.close()
    this.storage.snapshots.close()
    this.handOutLater()
    this.tellStatus()
    this.answerStopped()
  }

  /** Runs a part of the program; what it throws stops the member. */
  private guard(action: () => void): void {
    if (this.phase === 'stopped') {
      this.handOutLater()
      return this.checkStopping()
    }
    try {
      action()
    } catch (error) {
      this.fail(error as Error)
    }
  }

  private fail(error: Error): void {
    const { identity } = this.storage
    const { term } = this.consensus
    const text = `member ${identity.name} (node ${identity.node}) stopped in term ${term} after entry ${this.applier.index}: ${error.message}`
    this.failure = text
    this.settings.platform.log.error('stopped', {
      term,
      index: this.applier.index,
      error: error.stack ?? error.message,
    })
    this.halt()
  }

  private tellStatus(): void {
    const { status } = this
    const text = `${status.role} ${status.leader} ${status.leaderUrl} ${status.term} ${status.disk} ${status.failure}`
    if (text === this.lastStatus) return
    this.lastStatus = text
    this.onStatusListeners.call(status)
  }
}
