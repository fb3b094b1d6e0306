import { type Command, type Index, LEVEL_MAX, LockState, type Refused, type Result } from '@leasehold/core'
import { type Effects, type Entry, type Message, message, Raft } from '@leasehold/raft'
import type { AppliedBatch, ReadView } from '../api.js'
import { assert } from '../assert.js'
import { changedMembers, type ClusterMeta, decodeMembers, decodeMeta } from '../members.js'
import type { Storage } from '../storage.js'
import { Applier } from './applier.js'
import { DeadSessions } from './dead-sessions.js'
import { Floors } from './floors.js'
import { Flusher } from './flusher.js'
import { leaveHangingDisk } from './hanging-disk.js'
import { LeaderClock } from './leader-clock.js'
import { guarded } from './listeners.js'
import { type ChangeResult, type MembershipChange, PendingChanges } from './membership.js'
import type { ReplicaSettings } from './options.js'
import { Peers } from './peers.js'
import { Proposals, refused } from './proposals.js'
import { Reads } from './reads.js'
import type { Received } from './snapshot-transfer.js'
import { type Installable, Snapshotting } from './snapshotting.js'
import { ClockRate } from './clock-rate.js'
import { Stamps } from './stamps.js'
import { StateHashes } from './state-hashes.js'
import { type StateWish, StateWriter } from './state-writer.js'
import { Tenure } from './tenure.js'

/** Entries that were proposed and are not yet applied. */
const IN_FLIGHT_MAX = 256
/** Most bytes of commands in one entry, unless a log file is small. */
const BATCH_BYTES_MAX = 1024 * 1024
/** Rounds of effects in one go; more mean that the core never comes to rest. */
const ROUNDS_MAX = 10_000

export interface LoopOptions {
  readonly settings: ReplicaSettings
  readonly storage: Storage
  /** Runs a part of the member; what it throws stops it. */
  readonly guard: (action: () => void) => void
  readonly applied: (batch: AppliedBatch) => void
  /** A burst is over; `applied` says whether anything was applied in it. */
  readonly rested: (applied: boolean) => void
  readonly notLeader: () => Refused
}

/** Carries out what consensus wants: writes, sends, applies, answers. Everything here runs within `guard`. */
export class Loop {
  readonly raft: Raft
  readonly applier: Applier
  readonly proposals = new Proposals()
  readonly reads = new Reads()
  readonly batchBytes: number
  meta: ClusterMeta
  tenure: Tenure | undefined
  /** The member has stopped: nothing is begun any more. */
  halted = false

  readonly peers: Peers

  private readonly flusher: Flusher
  private readonly writer: StateWriter
  private readonly snapshotting: Snapshotting
  private readonly stamps = new Stamps()
  private readonly rate = new ClockRate()
  private readonly hashes = new StateHashes()
  private readonly floors: Floors
  private readonly gated: { readonly sequence: number; readonly messages: readonly Message[] }[] = []
  private readonly changes: PendingChanges
  private installable: Installable | undefined
  private readonly dead = new DeadSessions()
  /** Consensus has refused the open batch: it is offered again at the next event, not at once. */
  private refusedBatch = false
  private running = false
  private closing = false
  private cancelKick: (() => void) | undefined
  private cancelDue: (() => void) | undefined
  private later: (() => void)[] = []

  constructor(private readonly options: LoopOptions) {
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
    this.changes = new PendingChanges(this.raft)
    this.flusher = new Flusher({
      log,
      clock: platform.clock,
      blocking: settings.blockingWrites,
      done: (sequence, error) => guard(() => this.flushed(sequence, error)),
    })
    const { applier } = this
    const slices = { clock: platform.clock, sliceBytes: settings.snapshotSliceBytes, guard }
    this.writer = new StateWriter({ ...slices, applier, meta: () => this.meta })
    this.snapshotting = new Snapshotting({
      ...slices,
      storage,
      applier,
      writer: this.writer,
      log: platform.log,
      committed: () => this.raft.commit,
      taken: (meta, cut) => {
        this.raft.snapshotTaken(meta)
        if (cut > 0) this.raft.compact(cut)
        log.compact(cut)
        this.peers.save()
        this.turn()
      },
    })
    this.floors = new Floors({ ...platform, self: identity.node, enabled: settings.clockFloors })
    this.peers = new Peers({
      settings,
      identity,
      raft: this.raft,
      guard,
      step: (received) => {
        this.raft.step(received)
        this.turn()
      },
      ended: (node) => {
        this.raft.processEnded(node)
        this.turn()
      },
      writer: this.writer,
      transferred: (to, done) => {
        this.raft.reportSnapshot(to, done)
        this.turn()
      },
      install: (received) => this.takeIn(received),
      hash: (from, index, hash) => this.compare(from, index, hash),
      level: (from, level) => {
        this.floors.announced(from, level)
        if (this.tenure?.ready) this.configure(this.floors.raised(this.applier.state.level, this.meta.members))
      },
    })
    this.peers.setMembers(this.meta.members)
    this.stamps.note(log.recovered)
    if (this.isAlone) this.raft.campaign()
    this.kick()
  }

  /** This member is the only voter. */
  get isAlone(): boolean {
    const { voters, votersOutgoing } = this.raft.configuration
    return voters.length === 1 && voters[0] === this.raft.id && votersOutgoing.length === 0
  }

  /** Something is under way whose end must be waited for. */
  get isWriting(): boolean {
    return !this.flusher.idle || this.snapshotting.busy || this.peers.isSaving
  }

  /** Commands have no outcome yet. */
  get isWaiting(): boolean {
    return this.proposals.count > 0 || (this.tenure?.waiting.size ?? 0) > 0
  }

  view(): ReadView<LockState> {
    return { state: this.applier.state, index: this.applier.index }
  }

  /** Writes the state down as it is now, or later, in slices. */
  write(wish: StateWish): void {
    this.writer.want(wish)
  }

  /** Closes the open batch at the next turn, so that everything that arrives in this one goes together. */
  kick(): void {
    this.cancelKick ??= this.options.settings.platform.clock.after(0, () => {
      this.cancelKick = undefined
      if (this.halted) this.handOutLater()
      this.options.guard(() => this.turn())
    })
  }

  /** Runs `action` after the present call. */
  defer(action: () => void): void {
    this.later.push(action)
    this.kick()
  }

  tick(): void {
    const { settings } = this.options
    this.tenure?.clock.read(settings.platform.clock.monotonicMs())
    this.raft.tick()
    const electionTimeoutMs = settings.electionTicks * settings.tickMs
    leaveHangingDisk(this.raft, { underWayMs: this.flusher.underWayMs, electionTimeoutMs }, settings.platform.log)
    this.peers.tick()
    if (this.floors.announces(this.raft.leader, this.applier.state.level))
      this.peers.sendLevel(this.raft.leader, LEVEL_MAX)
    if (this.reads.tick(2 * settings.electionTicks)) {
      this.raft.abandonReads()
      this.refuseReads(refused('no-quorum', 'no quorum confirmed the read'))
    }
    this.turn()
  }

  /** Does what can be done now, and closes the open batch if the disk is free. */
  turn(): void {
    this.closing = true
    this.advance()
  }

  /** Proposes a change of the membership; `done` runs once it is applied here. */
  change(change: MembershipChange, done: (result: ChangeResult) => void): void {
    const refusal = this.changes.propose(change, this.meta, done)
    if (refusal) this.defer(() => done(refusal))
    else this.kick()
  }

  halt(refusal: Refused): void {
    this.halted = true
    this.cancelDue?.()
    this.snapshotting.halt()
    this.endTenure(refusal)
    this.writer.halt()
    this.peers.close()
    this.handOutLater()
  }

  private flushed(sequence: number, error: Error | undefined): void {
    if (error) throw error
    this.persisted(sequence)
    this.turn()
  }

  private advance(): void {
    if (this.running || this.halted) return
    this.running = true
    let applied = false
    try {
      for (let round = 0, more = true; more; round++) {
        if (round >= ROUNDS_MAX) assert(false, `${round} rounds of effects`)
        this.closeBatch()
        this.beginReads()
        const effects = this.raft.takeEffects()
        for (const out of effects.messages) this.peers.send(out)
        more = this.flush(effects)
        // A write that fails at once, such as a new log file on a disk that takes none, stops the member within this call.
        if (this.halted) return
        more = this.applyCommitted(effects.committed) || more
        applied ||= effects.committed.length > 0
        for (const { context, index } of effects.reads) this.reads.confirm(context, index)
        for (const context of effects.readsLost) more = this.reads.lost(context) || more
        if (effects.snapshotWanted) this.snapshotting.take()
        more = this.changeRole() || more
        this.answerReads()
        if (this.halted) return
      }
    } finally {
      this.running = false
    }
    this.closing = false
    const more = (this.proposals.count > 0 && !this.refusedBatch) || this.reads.canBegin
    if (this.tenure?.ready && this.flusher.idle && this.hasRoom && more) this.kick()
    this.handOutLater()
    this.takeSnapshot()
    if (this.halted) return
    this.armDue()
    this.options.rested(applied)
  }

  private answerReads(): void {
    const { log } = this.options.settings.platform
    for (const reader of this.reads.ready(this.applier.index)) guarded(log, () => reader(this.view()))
  }

  private get hasRoom(): boolean {
    return this.raft.transferee === 0 && (this.tenure?.waiting.size ?? 0) < IN_FLIGHT_MAX
  }

  /** Proposes the open batch, or an empty entry if time must move. */
  private closeBatch(): void {
    const { tenure } = this
    if (!this.closing || !tenure?.ready || !this.flusher.idle || !this.hasRoom) return
    const now = this.options.settings.platform.clock.monotonicMs()
    const { state } = this.applier
    if (this.proposals.count === 0 && !tenure.wantsStamp(now, state.nextDeadline(), state.hasDeadlines)) return
    this.closing = false
    const at = tenure.stamp(now, state.now)
    const { data, batch } = this.proposals.close(at, this.batchBytes)
    const index = this.raft.propose([data])
    this.refusedBatch = index === undefined
    if (index === undefined) this.proposals.reopen(batch)
    else tenure.proposed(index as Index, at, batch)
  }

  private beginReads(): void {
    if (this.raft.leader === 0 || (this.raft.role === 'leader' && !this.tenure?.ready)) return
    const context = this.reads.begin()
    if (context === undefined || this.raft.read(context)) return
    this.refuseReads(this.options.notLeader())
  }

  /** Returns whether something became durable at once. */
  private flush(effects: Effects): boolean {
    const { persist, gated } = effects
    if (persist) {
      const { sequence, hardState, entries, snapshot, mustSync } = persist
      if (snapshot) this.install(snapshot.index)
      this.stamps.note(entries)
      const { clock, log } = this.options.settings.platform
      if (this.raft.role === 'follower') this.rate.compare(this.raft.term, entries, clock.monotonicMs(), log)
      const base = snapshot && { index: snapshot.index, term: snapshot.term }
      this.flusher.add({ sequence, hardState, entries, base, mustSync })
      if (gated.length > 0) this.gated.push({ sequence, messages: gated })
    } else for (const out of gated) this.peers.send(out)
    const sequence = this.flusher.start(effects.committed.length === 0)
    if (sequence !== undefined) this.persisted(sequence)
    return sequence !== undefined
  }

  private persisted(sequence: number): void {
    this.raft.persisted(sequence)
    for (let [first] = this.gated; first !== undefined && first.sequence <= sequence; [first] = this.gated) {
      this.gated.shift()
      for (const out of first.messages) this.peers.send(out)
    }
  }

  private applyCommitted(entries: readonly Entry[]): boolean {
    for (const entry of entries) {
      const { batch, results } = this.applier.apply(entry)
      this.stamps.applied(entry.index)
      if (entry.kind === 'configuration') this.changeMembers(entry)
      this.options.applied(batch)
      this.answer(batch.index, results)
      if (this.tenure && batch.index === this.tenure.opening && entry.term === this.tenure.term)
        this.becomeReady(this.tenure)
      if (entry.index % this.options.settings.compareEvery === 0) this.announceHash()
    }
    if (entries.length > 0) this.raft.applied(this.applier.index)
    return entries.length > 0
  }

  private answer(index: Index, results: readonly Result[]): void {
    const batch = this.tenure?.take(index)
    if (!batch) return
    assert(
      batch.length === results.length,
      () => `${results.length} results for ${batch.length} commands of entry ${index}`,
    )
    const { log } = this.options.settings.platform
    batch.forEach(({ answer }, i) => guarded(log, () => answer(results[i] as Result)))
  }

  private changeMembers(entry: Extract<Entry, { kind: 'configuration' }>): void {
    const configuration = this.raft.applyConfiguration(entry.change)
    const members = changedMembers(this.meta.members, decodeMembers(entry.change.context), configuration)
    this.meta = { ...this.meta, configuration, members }
    this.peers.setMembers(members)
    const waiting = this.changes.take(entry.index)
    if (waiting) this.later.push(() => waiting({ kind: 'changed', index: entry.index }))
  }

  // --- leadership ---

  /** Follows consensus into a term as leader, or out of it. Returns whether an entry was proposed. */
  private changeRole(): boolean {
    const { role, term } = this.raft
    if (this.tenure && (role !== 'leader' || this.tenure.term !== term)) {
      this.options.settings.platform.log.info('leads no more', { term: this.tenure.term, now: term })
      this.endTenure(this.options.notLeader())
    }
    if (role !== 'leader' || this.tenure) return false
    const { platform, tickMs } = this.options.settings
    const base = this.stamps.highest(this.applier.state.now)
    const now = platform.clock.monotonicMs()
    const clock = new LeaderClock(base, now, tickMs)
    const first = new Proposals()
    const command = this.floors.opening(this.applier.state.level, this.meta.members)
    if (command !== undefined) first.addFirst(command)
    const opening = this.raft.propose([first.close(clock.stamp(now, base), this.batchBytes).data])
    assert(opening !== undefined, () => `the leader of term ${term} did not take its first entry`)
    this.tenure = new Tenure(term, opening as Index, clock, base)
    this.refusedBatch = false
    platform.log.info('leads', { term, index: opening })
    return true
  }

  private becomeReady(tenure: Tenure): void {
    tenure.ready = true
    this.closing = true
    if (this.options.settings.endLocalSessions) {
      for (const command of this.dead.ends(this.applier.state)) this.proposals.addFirst(command)
    }
    // In front of everything else that may grant.
    this.configure(this.floors.following(this.applier.state.level))
  }

  private endTenure(refusal: Refused): void {
    const { tenure } = this
    this.tenure = undefined
    const hint = 'repeat it with the same request number'
    const lost = refused('unknown-outcome', 'leadership was lost before the outcome was known', hint)
    for (const batch of tenure?.waiting.values() ?? []) {
      for (const { answer } of batch) this.later.push(() => answer(lost))
    }
    for (const answer of this.proposals.drain()) this.later.push(() => answer(refusal))
    this.refuseReads(refusal)
    for (const waiting of this.changes.drain()) this.later.push(() => waiting(lost))
    this.peers.stopTransfers()
  }

  private refuseReads(refusal: Refused): void {
    for (const reader of this.reads.drain()) this.later.push(() => reader({ refused: refusal }))
  }

  /** A timer for what is due before the next tick. */
  private armDue(): void {
    this.cancelDue?.()
    this.cancelDue = undefined
    if (!this.tenure?.ready || this.refusedBatch) return
    const due = this.applier.state.nextDeadline()
    if (due === undefined || this.tenure.lastStamp >= due) return
    const { platform, tickMs } = this.options.settings
    const delay = Math.max(1, due - this.tenure.clock.read(platform.clock.monotonicMs()))
    if (delay >= tickMs) return
    this.cancelDue = platform.clock.after(delay, () => {
      this.cancelDue = undefined
      this.options.guard(() => this.turn())
    })
  }

  // --- snapshots and hashes ---

  private takeSnapshot(): void {
    const { settings, storage } = this.options
    const full = storage.log.full || storage.snapshots.full
    this.snapshotting.maybeTake(full ? settings.segmentBytes : settings.snapshotBytes)
  }

  /**
   * A snapshot of the leader has arrived: first it becomes durable, then consensus takes it. Its leader may have been replaced
   * meanwhile: what is durable is installed all the same, as a restart would do.
   */
  private takeIn(received: Received): void {
    const { from, leaderTerm, index, term, meta } = received
    this.snapshotting.takeIn(received, (outcome) => {
      if (outcome === 'failed') return this.peers.installed('failed')
      this.installable = outcome === 'known' ? undefined : outcome
      const { configuration } = decodeMeta(meta)
      const snapshot = { index, term, configuration }
      this.raft.step(message({ kind: 'snapshot', from, to: this.raft.id, term: leaderTerm, snapshot }))
      this.raft.snapshotArrived(snapshot)
      this.turn()
      this.installable = undefined
      this.peers.installed('done')
    })
  }

  /** Consensus takes the leader's snapshot in place of log and state. */
  private install(index: Index | number): void {
    const { installable } = this
    assert(
      installable?.received.index === index,
      () => `snapshot ${index} is installed, ${installable?.received.index} has arrived`,
    )
    this.applier.install(installable.state, index, installable.received.term)
    this.meta = installable.meta
    this.stamps.clear()
    this.peers.setMembers(this.meta.members)
    this.options.applied({ index: index as Index, commands: 0, pushes: [], events: [] })
  }

  /** Puts a command of this leader in front of all others. */
  private configure(command: Command | undefined): void {
    if (command === undefined) return
    this.proposals.addFirst(command)
    this.kick()
  }

  private announceHash(): void {
    const { index, state } = this.applier
    const hash = state.hash()
    for (const { node } of this.meta.members) if (node !== this.raft.id) this.peers.sendHash(node, index, hash)
    this.compare(this.raft.id, index, hash)
  }

  private compare(from: number, index: number, hash: string): void {
    const problem = this.hashes.note(index, from, hash, this.raft.id, this.raft.configuration.voters)
    assert(problem === undefined, () => problem as string)
  }

  private handOutLater(): void {
    const { later } = this
    if (later.length === 0) return
    this.later = []
    for (const action of later) guarded(this.options.settings.platform.log, action)
  }
}
