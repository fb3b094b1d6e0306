import { assert, type Command, type Index, LEVEL_MAX, LockState, type Refused } from '@leasehold/core'
import { type Effects, type Entry, message, Raft } from '@leasehold/raft'
import type { AppliedBatch, ReadView } from '../member.js'
import { changedMembers, type ClusterMeta, decodeMembers, decodeMeta } from '../cluster-meta.js'
import type { Storage } from '../storage/storage.js'
import { Applier } from './applier.js'
import { Flusher } from './flusher.js'
import { EntryProposer } from '../leadership/entry-proposer.js'
import { handOverOnHangingDisk } from '../leadership/hanging-disk.js'
import { DeferredCalls } from './deferred-calls.js'
import { GatedMessages } from './gated-messages.js'
import { runGuarded } from './listeners.js'
import { type ChangeResult, type MembershipChange, PendingMembershipChanges } from './membership-changes.js'
import type { ReplicaSettings } from '../replica-options.js'
import { Peers } from './peers.js'
import { type Answer, refused } from './proposals.js'
import { Reads } from './reads.js'
import type { ReceivedSnapshot } from '../snapshots/snapshot-transfer.js'
import { type Installable, SnapshotManager } from '../snapshots/snapshot-manager.js'
import { ClockRate } from '../clock/clock-rate.js'
import { PendingTimestamps } from '../clock/pending-timestamps.js'
import { StateHashes } from './state-hashes.js'
import { type ExportRequest, StateExporter } from '../snapshots/state-exporter.js'

/** Most bytes of commands in one entry; half a log file if that is less. */
const BATCH_BYTES_MAX = 1024 * 1024
/** Most rounds of effects in one run. More mean that the consensus core never becomes idle. */
const ROUNDS_MAX = 10_000

export interface LoopOptions {
  readonly settings: ReplicaSettings
  readonly storage: Storage
  /** Runs a part of the member. An error stops the member. */
  readonly guard: (action: () => void) => void
  readonly onApplied: (batch: AppliedBatch) => void
  /** Runs at the end of a burst of work. `applied`: entries were applied in it. */
  readonly idle: (applied: boolean) => void
  readonly notLeader: () => Refused
}

/** Executes the effects of the consensus core: writes, sends, applies, runs callbacks. Everything runs within `guard`. */
export class Loop {
  readonly #options: LoopOptions
  readonly raft: Raft
  readonly applier: Applier
  readonly reads = new Reads()
  readonly batchBytes: number
  meta: ClusterMeta
  /** Whether the member has stopped. Nothing new is started then. */
  halted = false

  readonly peers: Peers

  readonly #flusher: Flusher
  readonly #exporter: StateExporter
  readonly #snapshots: SnapshotManager
  readonly timestamps = new PendingTimestamps()
  readonly #clockRate = new ClockRate()
  readonly #hashes = new StateHashes()
  readonly #proposer: EntryProposer
  readonly #deferred: DeferredCalls
  readonly #gated = new GatedMessages()
  readonly #changes: PendingMembershipChanges
  #installable: Installable | undefined
  #isRunning = false
  #closing = false
  #isRunScheduled = false

  constructor(options: LoopOptions) {
    this.#options = options
    const { settings, storage, guard } = options
    const { platform } = settings
    const { snapshot, log, identity } = storage
    this.meta = decodeMeta(snapshot.meta)
    const bounds = { events: settings.historyEvents, bytes: settings.historyBytes }
    this.applier = new Applier(LockState.restore(snapshot.state), snapshot.index, snapshot.term, bounds)
    this.batchBytes = Math.min(BATCH_BYTES_MAX, Math.floor(log.frameRoom / 2))
    this.raft = new Raft({
      id: identity.node,
      snapshot: { index: snapshot.index, term: snapshot.term, configuration: this.meta.configuration },
      hardState: log.hardState,
      entries: log.recovered,
      limits: { electionTicks: settings.electionTicks, appendBytesMax: this.batchBytes },
      random: (limit) => platform.random.below(limit),
    })
    this.#changes = new PendingMembershipChanges(this.raft)
    this.#flusher = new Flusher({
      log,
      clock: platform.clock,
      blocking: settings.blockingWrites,
      done: (sequence, error) => guard(() => this.#flushed(sequence, error)),
    })
    const { applier } = this
    const slices = { clock: platform.clock, sliceBytes: settings.snapshotSliceBytes, guard }
    this.#exporter = new StateExporter({ ...slices, applier, meta: () => this.meta })
    this.#snapshots = new SnapshotManager({
      ...slices,
      storage,
      applier,
      exporter: this.#exporter,
      log: platform.log,
      committed: () => this.raft.commit,
      saved: (meta, cut) => {
        this.raft.snapshotTaken(meta)
        if (cut > 0) this.raft.compact(cut)
        log.compact(cut)
        this.peers.save()
        this.run()
      },
    })
    this.#deferred = new DeferredCalls(platform.log)
    this.#proposer = new EntryProposer({
      settings,
      raft: this.raft,
      applier,
      timestamps: this.timestamps,
      batchBytes: this.batchBytes,
      members: () => this.meta.members,
      deferred: this.#deferred,
      scheduleRun: () => this.scheduleRun(),
      due: () => guard(() => this.run()),
    })
    this.peers = this.#createPeers()
    this.peers.setMembers(this.meta.members)
    this.timestamps.note(log.recovered)
    if (this.isAlone) this.raft.campaign()
    this.scheduleRun()
  }

  #createPeers(): Peers {
    const { settings, storage, guard } = this.#options
    return new Peers({
      settings,
      identity: storage.identity,
      raft: this.raft,
      guard,
      step: (received) => {
        this.raft.step(received)
        this.run()
      },
      ended: (node) => {
        this.raft.processEnded(node)
        this.run()
      },
      exporter: this.#exporter,
      transferred: (to, done) => {
        this.raft.reportSnapshot(to, done)
        this.run()
      },
      install: (received) => this.#receiveSnapshot(received),
      hash: (from, index, hash) => this.#compare(from, index, hash),
      level: (from, level) => this.#proposer.receiveLevel(from, level),
    })
  }

  /** Whether this member is the only voter. */
  get isAlone(): boolean {
    const { voters, votersOutgoing } = this.raft.configuration
    return voters.length === 1 && voters[0] === this.raft.id && votersOutgoing.length === 0
  }

  /** Whether a write is in progress that a stop must wait for. */
  get isWriting(): boolean {
    return !this.#flusher.isIdle || this.#snapshots.isBusy || this.peers.isSaving
  }

  /** Whether commands have no outcome yet. */
  get isWaiting(): boolean {
    return this.#proposer.isWaiting
  }

  get isLeading(): boolean {
    return this.#proposer.isLeading
  }

  /** Adds a command to the open batch, or returns why not. `answer` gets its result. */
  submit(command: Command, answer: Answer): Refused | undefined {
    const refusal = this.#proposer.proposals.add(command, answer, this.batchBytes)
    if (!refusal) this.scheduleRun()
    return refusal
  }

  view(): ReadView<LockState> {
    return { state: this.applier.state, index: this.applier.index }
  }

  /** Exports the state as of now or later, in slices. */
  exportState(request: ExportRequest): void {
    this.#exporter.request(request)
  }

  /** Schedules a run in the next turn, so that all commands of this turn share one batch. */
  scheduleRun(): void {
    if (this.#isRunScheduled) return
    this.#isRunScheduled = true
    this.#options.settings.platform.clock.after(0, () => {
      this.#isRunScheduled = false
      if (this.halted) this.#deferred.run()
      this.#options.guard(() => this.run())
    })
  }

  /** Runs `action` after the current call. */
  defer(action: () => void): void {
    this.#deferred.add(action)
    this.scheduleRun()
  }

  tick(): void {
    const { settings } = this.#options
    this.#proposer.readClock()
    this.raft.tick()
    const electionTimeoutMs = settings.electionTicks * settings.tickMs
    handOverOnHangingDisk(this.raft, { underWayMs: this.#flusher.underWayMs, electionTimeoutMs }, settings.platform.log)
    this.peers.tick()
    if (this.#proposer.announcesLevel()) this.peers.sendLevel(this.raft.leader, LEVEL_MAX)
    if (this.reads.tick(2 * settings.electionTicks)) {
      this.raft.abandonReads()
      this.#rejectReads(refused('no-quorum', 'no quorum confirmed the read'))
    }
    this.run()
  }

  /** Processes all pending work, and closes the open batch if the disk is idle. */
  run(): void {
    this.#closing = true
    this.#advance()
  }

  /** Proposes a membership change. `done` runs once it is applied here. */
  change(change: MembershipChange, done: (result: ChangeResult) => void): void {
    const refusal = this.#changes.propose(change, this.meta, done)
    if (refusal) this.defer(() => done(refusal))
    else this.scheduleRun()
  }

  halt(refusal: Refused): void {
    this.halted = true
    this.#proposer.cancelDueTimer()
    this.#snapshots.halt()
    this.#endLeadership(refusal)
    this.#exporter.halt()
    this.peers.close()
    this.#deferred.run()
  }

  #flushed(sequence: number, error: Error | undefined): void {
    if (error) throw error
    this.#persisted(sequence)
    this.run()
  }

  #advance(): void {
    if (this.#isRunning || this.halted) return
    this.#isRunning = true
    let applied = false
    try {
      for (let round = 0, more = true; more; round++) {
        if (round >= ROUNDS_MAX) assert(false, `${round} rounds of effects`)
        if (this.#closing && this.#flusher.isIdle && this.#proposer.closeBatch()) this.#closing = false
        this.#beginReads()
        const effects = this.raft.takeEffects()
        for (const out of effects.messages) this.peers.send(out)
        more = this.#flush(effects)
        // A write that fails immediately, such as a new log file on a read-only disk, stops the member within this call.
        if (this.halted) return
        more = this.#applyCommitted(effects.committed) || more
        applied ||= effects.committed.length > 0
        for (const { context, index } of effects.reads) this.reads.confirm(context, index)
        for (const context of effects.readsLost) more = this.reads.lost(context) || more
        if (effects.snapshotWanted) this.#snapshots.take()
        more = this.#changeRole() || more
        this.#answerReads()
        if (this.halted) return
      }
    } finally {
      this.#isRunning = false
    }
    this.#closing = false
    const more = this.#proposer.hasOpenBatch || this.reads.canBegin
    if (this.#proposer.isReady && this.#flusher.isIdle && this.#proposer.hasRoom && more) this.scheduleRun()
    this.#deferred.run()
    this.#takeSnapshot()
    if (this.halted) return
    this.#proposer.armDueTimer()
    this.#options.idle(applied)
  }

  #answerReads(): void {
    const { log } = this.#options.settings.platform
    for (const reader of this.reads.ready(this.applier.index)) runGuarded(log, () => reader(this.view()))
  }

  #beginReads(): void {
    if (this.raft.leader === 0 || (this.raft.role === 'leader' && !this.#proposer.isReady)) return
    const context = this.reads.begin()
    if (context === undefined || this.raft.read(context)) return
    this.#rejectReads(this.#options.notLeader())
  }

  /** Flushes what must become durable. Returns whether it is durable already. */
  #flush(effects: Effects): boolean {
    const { persist, gated } = effects
    if (persist) {
      const { sequence, hardState, entries, snapshot, mustSync } = persist
      if (snapshot) this.#install(snapshot.index)
      this.timestamps.note(entries)
      const { clock, log } = this.#options.settings.platform
      if (this.raft.role === 'follower') this.#clockRate.compare(this.raft.term, entries, clock.monotonicMs(), log)
      const base = snapshot && { index: snapshot.index, term: snapshot.term }
      this.#flusher.add({ sequence, hardState, entries, base, mustSync })
      this.#gated.add(sequence, gated)
    } else for (const out of gated) this.peers.send(out)
    const sequence = this.#flusher.start(effects.committed.length === 0)
    if (sequence !== undefined) this.#persisted(sequence)
    return sequence !== undefined
  }

  #persisted(sequence: number): void {
    this.raft.persisted(sequence)
    this.#gated.release(sequence, (out) => this.peers.send(out))
  }

  #applyCommitted(entries: readonly Entry[]): boolean {
    for (const entry of entries) {
      const { batch, results } = this.applier.apply(entry)
      this.timestamps.applied(entry.index)
      if (entry.kind === 'configuration') this.#changeMembers(entry)
      this.#options.onApplied(batch)
      if (this.#proposer.applied(entry, results)) this.#closing = true
      if (entry.index % this.#options.settings.compareEvery === 0) this.#announceHash()
    }
    if (entries.length > 0) this.raft.applied(this.applier.index)
    return entries.length > 0
  }

  #changeMembers(entry: Extract<Entry, { kind: 'configuration' }>): void {
    const configuration = this.raft.applyConfiguration(entry.change)
    const members = changedMembers(this.meta.members, decodeMembers(entry.change.context), configuration)
    this.meta = { ...this.meta, configuration, members }
    this.peers.setMembers(members)
    const waiting = this.#changes.take(entry.index)
    if (waiting) this.#deferred.add(() => waiting({ kind: 'changed', index: entry.index }))
  }

  /** Starts or ends leadership as consensus decides. Returns whether an entry was proposed. */
  #changeRole(): boolean {
    if (this.#proposer.hasLostLeadership) {
      this.#options.settings.platform.log.info('leads no more', { term: this.#proposer.term, now: this.raft.term })
      this.#endLeadership(this.#options.notLeader())
    }
    return this.#proposer.begin()
  }

  #endLeadership(refusal: Refused): void {
    const hint = 'repeat it with the same request number'
    const lost = refused('unknown-outcome', 'leadership was lost before the outcome was known', hint)
    this.#proposer.end(lost, refusal)
    this.#rejectReads(refusal)
    for (const waiting of this.#changes.drain()) this.#deferred.add(() => waiting(lost))
    this.peers.stopTransfers()
  }

  #rejectReads(refusal: Refused): void {
    for (const reader of this.reads.drain()) this.#deferred.add(() => reader({ refused: refusal }))
  }

  #takeSnapshot(): void {
    const { settings, storage } = this.#options
    const full = storage.log.isFull || storage.snapshots.isFull
    this.#snapshots.maybeTake(full ? settings.segmentBytes : settings.snapshotBytes)
  }

  /**
   * Saves a snapshot from the leader, then passes it to consensus. If the leader was replaced meanwhile, the durable snapshot
   * is installed nevertheless, as a restart would do.
   */
  #receiveSnapshot(received: ReceivedSnapshot): void {
    const { from, leaderTerm, index, term, meta } = received
    this.#snapshots.receiveSnapshot(received, (outcome) => {
      if (outcome === 'failed') return this.peers.installed('failed')
      this.#installable = outcome === 'known' ? undefined : outcome
      const { configuration } = decodeMeta(meta)
      const snapshot = { index, term, configuration }
      this.raft.step(message({ kind: 'snapshot', from, to: this.raft.id, term: leaderTerm, snapshot }))
      this.raft.snapshotArrived(snapshot)
      this.run()
      this.#installable = undefined
      this.peers.installed('done')
    })
  }

  /** Replaces log and state with the leader's snapshot. */
  #install(index: Index | number): void {
    const installable = this.#installable
    assert(
      installable?.received.index === index,
      () => `snapshot ${index} is installed, ${installable?.received.index} has arrived`,
    )
    this.applier.install(installable.state, index, installable.received.term)
    this.meta = installable.meta
    this.timestamps.clear()
    this.peers.setMembers(this.meta.members)
    this.#options.onApplied({ index: index as Index, commands: 0, pushes: [], events: [] })
  }

  #announceHash(): void {
    const { index, state } = this.applier
    const hash = state.hash()
    for (const { node } of this.meta.members) if (node !== this.raft.id) this.peers.sendHash(node, index, hash)
    this.#compare(this.raft.id, index, hash)
  }

  #compare(from: number, index: number, hash: string): void {
    const problem = this.#hashes.note(index, from, hash, this.raft.id, this.raft.configuration.voters)
    assert(problem === undefined, () => problem as string)
  }
}
