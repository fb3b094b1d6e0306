import { type Effects, type Entry, type HardState, Raft, type RaftOptions, type SnapshotMeta } from '../../src/index.js'
import type { RaftRules } from '../../src/rules.js'
import { entryText, hardStateText, roleName, snapshotText } from './describe.js'
import { type Parcel, parcelText, Threads } from './threads.js'

export interface NodeOptions extends Omit<RaftOptions, 'snapshot' | 'hardState' | 'entries' | 'random'> {
  readonly asynchronous: boolean
  readonly rules: RaftRules
}

/** One member of a script: the core with a disk in memory, driven as the scripts' own harness does. */
export class ScriptNode {
  readonly raft: Raft
  stored: Entry[] = []
  base: { index: number; term: number }
  private hard: HardState
  readonly threads: Threads
  private shown: { role: string; leader: number }
  private snapshots: SnapshotMeta[]

  constructor(
    readonly options: NodeOptions,
    snapshot: SnapshotMeta,
  ) {
    this.base = { index: snapshot.index, term: snapshot.term }
    this.hard = { term: 0, vote: 0, commit: snapshot.index }
    this.snapshots = [snapshot]
    // Timeouts are only ever reached by whole elections' worth of ticks: the draw is the longest.
    const draw = (limit: number) => limit - 1
    const raftOptions = { ...options, snapshot, hardState: this.hard, entries: [], random: draw }
    this.raft = new Raft(raftOptions, options.rules)
    this.shown = { role: this.raft.role, leader: this.raft.leader }
    this.threads = new Threads(this.raft, snapshot.index)
  }

  get latestSnapshot(): SnapshotMeta {
    return this.snapshots[this.snapshots.length - 1] as SnapshotMeta
  }

  get hasReady(): boolean {
    return this.raft.hasEffects || this.softChanged()
  }

  private softChanged(): boolean {
    return this.shown.role !== this.raft.role || this.shown.leader !== this.raft.leader
  }

  /** Handles everything pending; returns what it looked like and what goes out. */
  ready(): { text: string; parcels: readonly Parcel[] } {
    if (!this.hasReady) return { text: '<empty Ready>', parcels: [] }
    const { asynchronous } = this.options
    const soft = this.softChanged()
    const effects = this.raft.takeEffects()
    const { hardState, committed } = effects
    const { entries = [], snapshot } = effects.persist ?? {}
    const voteOrTerm =
      hardState !== undefined && (hardState.term !== this.hard.term || hardState.vote !== this.hard.vote)
    const lines = [`Ready MustSync=${entries.length > 0 || voteOrTerm}:`]
    if (soft) lines.push(`Lead:${effects.leader} State:${roleName(effects.role)}`)
    if (hardState !== undefined) lines.push(`HardState ${hardStateText(hardState)}`)
    if (entries.length > 0) lines.push('Entries:', ...entries.map(entryText))
    if (snapshot !== undefined) lines.push(`Snapshot ${snapshotText(snapshot)}`)
    if (committed.length > 0) lines.push('CommittedEntries:', ...committed.map(entryText))
    // The scripts' core asks for votes before its term is written (docs/divergence.md).
    const parcels = [...effects.messages, ...effects.gated.filter(({ kind }) => !asynchronous || kind === 'vote')]
    const out = parcels.map((one) => parcelText(one))
    if (asynchronous) out.push(...this.threads.queue(effects))
    if (out.length > 0) lines.push('Messages:', ...out)
    this.shown = { role: effects.role, leader: effects.leader }
    this.hard = hardState ?? this.hard
    if (!asynchronous) this.advance(effects)
    return { text: lines.join('\n'), parcels }
  }

  private advance(effects: Effects): void {
    this.append(effects)
    const upTo = this.apply(effects)
    if (effects.persist !== undefined) this.raft.persisted(effects.persist.sequence)
    if (upTo > 0) this.raft.applied(upTo)
  }

  private append(effects: Effects): void {
    const { persist } = effects
    if (persist === undefined) return
    if (persist.snapshot !== undefined) {
      this.stored = []
      this.base = { index: persist.snapshot.index, term: persist.snapshot.term }
      this.snapshots = [persist.snapshot]
      this.raft.snapshotTaken(persist.snapshot)
    }
    const first = persist.entries[0]
    if (first === undefined) return
    this.stored.length = Math.max(0, first.index - this.base.index - 1)
    this.stored.push(...persist.entries)
  }

  private apply(effects: Effects): number {
    for (const entry of effects.committed) {
      const configuration =
        entry.kind === 'configuration' ? this.raft.applyConfiguration(entry.change) : this.latestSnapshot.configuration
      this.snapshots.push({ index: entry.index, term: entry.term, configuration })
      this.raft.snapshotTaken(this.latestSnapshot)
    }
    return effects.committed[effects.committed.length - 1]?.index ?? 0
  }

  compact(index: number): void {
    this.stored = this.stored.slice(index - this.base.index)
    this.base = { index, term: this.raft.termAt(index) as number }
    this.raft.compact(index)
  }

  /** Does one piece of a thread's work; returns how it is shown, and the replies to be delivered. */
  work(kind: 'append' | 'apply'): { text: string; parcels: readonly Parcel[] } {
    const work = (kind === 'append' ? this.threads.appendWork : this.threads.applyWork).shift()
    if (work === undefined) return { text: `no ${kind} work to perform`, parcels: [] }
    if (kind === 'append') this.append(work.effects)
    else this.apply(work.effects)
    const lines = ['Processing:', work.text, 'Responses:', ...work.replies.map((one) => parcelText(one))]
    return { text: lines.join('\n'), parcels: work.replies }
  }
}
