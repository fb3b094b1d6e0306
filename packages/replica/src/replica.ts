import {
  type Command,
  type Cursor,
  InvalidError,
  type LockState,
  type Refused,
  type Result,
  StorageError,
  type Token,
  tokenOf,
} from '@leasehold/core'
import type { AppliedBatch, Member, MemberStatus, ReadView } from './member.js'
import { FolderWatch } from './storage/folder-watch.js'
import { Listeners } from './driver/listeners.js'
import { Loop } from './driver/loop.js'
import type { ChangeResult, MembershipChange } from './driver/membership-changes.js'
import { type ReplicaOptions, type ReplicaSettings, settingsOf } from './replica-options.js'
import { mintSecrets, needsRoom, refused } from './driver/proposals.js'
import { type Reader, READS_MAX } from './driver/reads.js'
import { bootstrapFolder } from './storage/bootstrap.js'
import type { MemberInfo } from './cluster-meta.js'
import type { ExportResult } from './snapshots/state-export.js'
import { isInitialized, markContradicted, openStorage, type Storage } from './storage/storage.js'
import { ContradictionError } from './storage/storage-errors.js'

/** A graceful stop waits this long for commands without an outcome. */
const STOP_WAIT_MS = 2000
/** A folder check that takes longer than this is answered with the result of the previous one. */
const FOLDER_ANSWER_MS = 500
/** While the disk is full, the reserves are retried this often. */
const ROOM_RETRY_MS = 1000

interface ReportedStatus {
  readonly meta: Loop['meta']
  readonly leader: number
  readonly term: number
  readonly role: MemberStatus['role']
  readonly phase: 'running' | 'stopping' | 'stopped'
  readonly full: boolean
  readonly failure: string | undefined
}

/** A member, its role, and the last log index that matches the leader's. */
export interface MemberProgress extends MemberInfo {
  readonly role: 'voter' | 'learner'
  readonly match: number | undefined
}

let readLoop: (replica: Replica) => Loop

/** The loop of a member, for `inspect` and tests. */
export function loopOf(replica: Replica): Loop {
  return readLoop(replica)
}

/**
 * One member: drives consensus, the lock state, the log and the snapshots over a {@link Platform}.
 *
 * States: running → stopping (`stop` was called; pending work finishes) → stopped. A broken invariant or a failed write
 * stops the member at once, with `status.failure`. A running member is leader, follower, … as consensus decides; a leader is
 * *ready* once the first entry of its term is applied.
 */
export class Replica implements Member<LockState> {
  static {
    readLoop = (replica) => replica.#loop
  }

  readonly #settings: ReplicaSettings
  readonly #storage: Storage
  readonly #loop: Loop
  readonly #onAppliedListeners: Listeners<[AppliedBatch]>
  readonly #onIdleListeners: Listeners<[]>
  readonly #onStatusListeners: Listeners<[MemberStatus]>
  #phase: 'running' | 'stopping' | 'stopped' = 'running'
  #failure: string | undefined
  #failureHint: string | undefined
  readonly #folder: FolderWatch | undefined
  #cancelTick: (() => void) | undefined
  #roomRetryAt = 0
  #lastStatus = ''
  /** What the last reported status was made from. */
  #reported: ReportedStatus | undefined
  #stopCallbacks: (() => void)[] = []
  #stopDeadline = 0
  readonly #bootstrapToken: Token | undefined
  #isMarking = false

  /**
   * Opens a member's data folder, or bootstraps it. A service with a single member is ready for commands when `done` runs.
   * `done` never runs inside the call. It gets a StorageError for damage or a broken or full disk, and an InvalidError for
   * invalid options.
   */
  static open(options: ReplicaOptions, done: (error: Error | undefined, replica?: Replica) => void): void {
    const { platform } = options
    const finish = (error: Error | undefined, replica?: Replica): void => {
      platform.clock.after(0, () => done(error, replica))
    }
    let replica: Replica | undefined
    try {
      const settings = settingsOf(options)
      const open = (founded: boolean): void => {
        const storageOptions = { ...settings, changed: () => replica && replica.#roomChanged() }
        openStorage(platform.disk, storageOptions, (error, storage) => {
          if (!storage) return finish(error)
          const { skipped } = storage.snapshots
          if (skipped) {
            const text = 'the newest snapshot is damaged: the one before and the log stand in for it'
            platform.log.warn(text, {
              error: skipped.message,
              hint: 'check the disk: a second damaged file may be beyond repair',
            })
          }
          try {
            replica = new Replica(settings, storage, founded)
            replica.#whenUsable((problem) => finish(problem, problem ? undefined : replica))
          } catch (failed) {
            storage.log.close()
            storage.snapshots.close()
            finish(failed as Error)
          }
        })
      }
      if (isInitialized(platform.disk)) open(false)
      else bootstrapFolder(settings, (error, isFounder) => (error ? finish(error) : open(isFounder)))
    } catch (error) {
      finish(error as Error)
    }
  }

  /** For {@link Replica.open}. */
  constructor(settings: ReplicaSettings, storage: Storage, founded: boolean) {
    this.#settings = settings
    this.#storage = storage
    const { log } = settings.platform
    this.#onAppliedListeners = new Listeners(log)
    this.#onIdleListeners = new Listeners(log)
    this.#onStatusListeners = new Listeners(log)
    this.#loop = new Loop({
      settings,
      storage,
      guard: (action) => this.#guard(action),
      onApplied: (batch) => this.#onAppliedListeners.call(batch),
      idle: (applied) => this.#loopIdle(applied),
      notLeader: () => this.#notLeader(),
    })
    const { state } = this.#loop.applier
    if (founded) this.#bootstrapToken = tokenOf(state.epoch, state.counter)
    const { disk, clock } = settings.platform
    if (disk.check !== undefined) {
      const check = storage.log.check.bind(storage.log)
      this.#folder = new FolderWatch({ path: disk.path, clock, log, check, guard: (action) => this.#guard(action) })
    }
    this.#scheduleTick()
  }

  /** The floor of the tokens if this start bootstrapped the service; undefined otherwise. The first token is greater. */
  get bootstrappedAbove(): Token | undefined {
    return this.#bootstrapToken
  }

  get status(): MemberStatus {
    const { identity } = this.#storage
    const { raft, applier, meta } = this.#loop
    const leader = this.#phase === 'stopped' ? 0 : raft.leader
    const info = meta.members.find((member) => member.node === leader)
    return {
      cluster: identity.cluster,
      epoch: applier.state.epoch,
      member: identity.name,
      role: this.#phase === 'stopped' ? 'stopped' : this.#role,
      leader: info?.name ?? '',
      leaderUrl: leader === identity.node ? this.#settings.url : (info?.url ?? ''),
      term: raft.term,
      commitIndex: raft.commit,
      appliedIndex: applier.index,
      disk: this.#isFull ? 'full' : 'ok',
      failure: this.#failure,
      failureHint: this.#failureHint,
    }
  }

  submit(command: Command, done: (result: Result) => void): void {
    const refusal = this.#refusalOf(command)
    if (refusal) return this.#loop.defer(() => done(refusal))
    const minted = mintSecrets(command, this.#settings.platform.random)
    const unfit = this.#loop.submit(minted, done)
    if (unfit) this.#loop.defer(() => done(unfit))
  }

  read(done: Reader): void {
    const refusal = this.#readRefusal()
    if (refusal) return this.#loop.defer(() => done({ refused: refusal }))
    this.#loop.reads.add(done)
    this.#loop.scheduleRun()
  }

  stale(): ReadView<LockState> {
    return this.#loop.view()
  }

  exportState(done: (answer: ExportResult) => void): void {
    const refuse = (): void => this.#loop.defer(() => done({ refused: this.#stoppedRefusal() }))
    if (this.#phase !== 'running') return refuse()
    this.#guard(() =>
      this.#loop.exportState({
        exported: ({ index, epoch, hash, state: { bytes, pieces } }) =>
          this.#loop.defer(() => done({ index, epoch, hash, bytes, pieces })),
        halted: refuse,
      }),
    )
  }

  onApplied(listener: (batch: AppliedBatch) => void): () => void {
    return this.#onAppliedListeners.add(listener)
  }

  onIdle(listener: () => void): () => void {
    return this.#onIdleListeners.add(listener)
  }

  onStatus(listener: (status: MemberStatus) => void): () => void {
    return this.#onStatusListeners.add(listener)
  }

  history(from: Cursor): ReturnType<Member<LockState>['history']> {
    return this.#loop.applier.since(from)
  }

  stop(done: () => void): void {
    this.#stopCallbacks.push(done)
    if (this.#phase === 'running') {
      this.#phase = 'stopping'
      this.#stopDeadline = this.#settings.platform.clock.monotonicMs() + STOP_WAIT_MS
    }
    this.#loop.scheduleRun()
  }

  /** The members that this one knows. Only the leader knows `match`. */
  get members(): readonly MemberProgress[] {
    const { raft, meta } = this.#loop
    const { progress } = raft.status
    return meta.members.map((member) => ({
      ...member,
      role: meta.configuration.voters.includes(member.node) ? 'voter' : 'learner',
      match: raft.role === 'leader' ? progress.get(member.node)?.match : undefined,
    }))
  }

  /** Changes the membership by one step. Refused unless this member leads. */
  changeMembership(change: MembershipChange, done: (result: ChangeResult) => void): void {
    const refusal =
      this.#phase !== 'running'
        ? this.#stoppedRefusal()
        : this.#loop.raft.role !== 'leader'
          ? this.#notLeader()
          : undefined
    if (refusal) return this.#loop.defer(() => done(refusal))
    this.#guard(() => this.#loop.change(change, done))
  }

  /** Transfers leadership to another voter, within an election timeout or not at all: watch `status`. */
  transferLeadership(name: string): void {
    const member = this.#loop.meta.members.find((one) => one.name === name)
    if (!member) throw new InvalidError(`${name} is not a member`)
    this.#guard(() => {
      this.#loop.raft.transferLeadership(member.node)
      this.#loop.run()
    })
  }

  /** Stops at once, because continuing could do harm. `status.failure` gets the reason. */
  abandon(why: string, hint?: string): void {
    this.#guard(() => {
      throw new StorageError(why, hint === undefined ? {} : { hint })
    })
  }

  /** Waits until a single member leads. A member of a larger cluster is usable at once. */
  #whenUsable(then: (problem: Error | undefined) => void): void {
    if (!this.#loop.isAlone) return then(undefined)
    const off = this.onApplied(() => end())
    const offStatus = this.onStatus(({ failure }) => failure !== undefined && end(failure))
    const end = (failure?: string): void => {
      // An entry that was not applied at the start may have added members: one of them may lead.
      if (failure === undefined && !this.#loop.isLeading && this.#loop.isAlone) return
      off()
      offStatus()
      then(failure === undefined ? undefined : new StorageError(failure))
    }
  }

  // --- time and the disk ---

  #scheduleTick(): void {
    this.#cancelTick = this.#settings.platform.clock.after(this.#settings.tickMs, () => {
      this.#scheduleTick()
      this.#guard(() => this.#tick())
    })
  }

  #tick(): void {
    const now = this.#settings.platform.clock.monotonicMs()
    if (this.#isFull && now >= this.#roomRetryAt) {
      this.#roomRetryAt = now + ROOM_RETRY_MS
      this.#storage.log.prepare()
      this.#storage.snapshots.prepare()
    }
    this.#folder?.tick()
    this.#loop.tick()
  }

  checkFolder(done: (problem: string | undefined) => void): void {
    const { clock } = this.#settings.platform
    let answered = false
    const answer = (): void => {
      if (answered) return
      answered = true
      cancel()
      done(this.#phase === 'stopped' ? undefined : this.#folder?.problem)
    }
    const cancel = clock.after(this.#folder === undefined ? 0 : FOLDER_ANSWER_MS, answer)
    if (this.#phase !== 'stopped') this.#folder?.check(answer)
  }

  get #isFull(): boolean {
    return this.#storage.log.isFull || this.#storage.snapshots.isFull
  }

  #roomChanged(): void {
    this.#guard(() => {
      const failure = this.#storage.log.failure ?? this.#storage.snapshots.failure
      if (failure) throw failure
      this.#reportStatus()
      this.#checkStopping()
    })
  }

  #loopIdle(applied: boolean): void {
    if (applied) this.#onIdleListeners.call()
    this.#reportStatus()
    this.#checkStopping()
  }

  // --- refusals ---

  #refusalOf(command: Command): Refused | undefined {
    if (this.#phase !== 'running') return this.#stoppedRefusal()
    if (this.#loop.raft.role !== 'leader') return this.#notLeader()
    if (!this.#isFull || !needsRoom(command)) return undefined
    const text = `the disk of ${this.#settings.name} is full: ${command.kind} is refused`
    return refused('storage', text, 'free disk space; release, renew and close still work')
  }

  #readRefusal(): Refused | undefined {
    if (this.#phase !== 'running') return this.#stoppedRefusal()
    if (this.#loop.raft.leader === 0) return this.#notLeader()
    const { count } = this.#loop.reads
    return count >= READS_MAX ? refused('limit', `${count} reads are already waiting`) : undefined
  }

  #stoppedRefusal(): Refused {
    return this.#failure === undefined
      ? refused('no-quorum', `member ${this.#settings.name} is stopping`)
      : refused('storage', `member ${this.#settings.name} has stopped: ${this.#failure}`, this.#failureHint)
  }

  #notLeader(): Refused {
    const { name } = this.#settings
    const problem = this.#loop.raft.leader === 0 ? 'knows no leader' : 'does not lead'
    return refused('no-quorum', `member ${name} ${problem}`)
  }

  // --- stopping ---

  /** Completes a graceful stop once nothing is pending, or after its time limit. */
  #checkStopping(): void {
    if (this.#phase === 'stopped') return this.#finishStop()
    if (this.#phase !== 'stopping' || this.#loop.isWriting) return
    const now = this.#settings.platform.clock.monotonicMs()
    if (this.#loop.isWaiting && this.#loop.isLeading && now < this.#stopDeadline) return
    this.#halt()
  }

  #finishStop(): void {
    if (!this.#storage.log.isIdle || !this.#storage.snapshots.isIdle || this.#isMarking) return
    const stopCallbacks = this.#stopCallbacks
    this.#stopCallbacks = []
    if (stopCallbacks.length === 0) return
    this.#settings.release(() => {
      for (const done of stopCallbacks) this.#settings.platform.clock.after(0, done)
    })
  }

  #halt(): void {
    this.#phase = 'stopped'
    this.#cancelTick?.()
    this.#loop.halt(this.#stoppedRefusal())
    this.#storage.log.close()
    this.#storage.snapshots.close()
    this.#reportStatus()
    this.#finishStop()
  }

  /** Runs a part of the member. An error stops the member. */
  #guard(action: () => void): void {
    if (this.#phase === 'stopped') return this.#checkStopping()
    try {
      action()
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #fail(error: Error): void {
    const { identity } = this.#storage
    const { raft, applier } = this.#loop
    const place = `in term ${raft.term} after entry ${applier.index}`
    this.#failureHint = error instanceof StorageError ? error.hint : undefined
    this.#failure = `member ${identity.name} (node ${identity.node}) stopped ${place}: ${error.message}`
    const hint = this.#failureHint
    const fields = { term: raft.term, index: applier.index, error: error.stack ?? error.message, ...(hint && { hint }) }
    this.#settings.platform.log.error('stopped', fields)
    if (error instanceof ContradictionError) this.#markContradicted(error)
    this.#halt()
  }

  /** Records the contradiction in the folder. The folder is released after that. */
  #markContradicted({ message }: ContradictionError): void {
    this.#isMarking = true
    markContradicted(this.#settings.platform.disk, message, () => {
      this.#isMarking = false
      this.#checkStopping()
    })
  }

  get #role(): Exclude<MemberStatus['role'], 'stopped'> {
    const { raft } = this.#loop
    if (raft.role === 'preCandidate') return 'candidate'
    return raft.role === 'follower' && raft.isLearner ? 'learner' : raft.role
  }

  #reportStatus(): void {
    const { raft, meta } = this.#loop
    const phase = this.#phase
    const failure = this.#failure
    const reported = this.#reported
    const isFull = this.#isFull
    const role = this.#role
    // Runs after every turn, and usually nothing has changed: then no text is built.
    if (
      reported?.meta === meta &&
      reported.leader === raft.leader &&
      reported.term === raft.term &&
      reported.role === role &&
      reported.phase === phase &&
      reported.full === isFull &&
      reported.failure === failure
    )
      return
    this.#reported = { meta, leader: raft.leader, term: raft.term, role, phase, full: isFull, failure }
    const { status } = this
    const { leader, leaderUrl, term, disk } = status
    const text = `${status.role} ${leader} ${leaderUrl} ${term} ${disk} ${failure}`
    if (text === this.#lastStatus) return
    this.#lastStatus = text
    this.#onStatusListeners.call(status)
  }
}
