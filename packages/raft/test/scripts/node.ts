import {
  type Effects,
  type Entry,
  type HardState,
  type Message,
  Raft,
  type RaftOptions,
  type SnapshotMeta,
} from '../../src/index.js'
import { entriesText, entryText, hardStateText, messageText, roleName, snapshotText } from './describe.js'

/** What the append or apply thread says to the core when it is done. */
export interface ThreadReply {
  readonly thread: 'append' | 'apply'
  readonly to: number
  readonly sequence: number
  readonly upTo: number
  readonly text: string
}

export type Parcel = Message | ThreadReply

export interface Work {
  readonly text: string
  readonly effects: Effects
  readonly replies: readonly Parcel[]
}

export function isReply(parcel: Parcel): parcel is ThreadReply {
  return 'thread' in parcel
}

export function parcelText(parcel: Parcel, indent = ''): string {
  return isReply(parcel) ? indent + parcel.text : messageText(parcel, indent)
}

export interface NodeOptions extends Omit<RaftOptions, 'snapshot' | 'hardState' | 'entries' | 'random'> {
  readonly asynchronous: boolean
}

/** One member of a script: the core with a disk in memory, driven as the scripts' own harness does. */
export class ScriptNode {
  readonly raft: Raft
  stored: Entry[] = []
  base: { index: number; term: number }
  private hard: HardState
  appendWork: Work[] = []
  applyWork: Work[] = []
  private shown: { role: string; leader: number }
  private snapshots: SnapshotMeta[]
  private lastStored = 0

  constructor(
    readonly options: NodeOptions,
    snapshot: SnapshotMeta,
  ) {
    this.base = { index: snapshot.index, term: snapshot.term }
    this.hard = { term: 0, vote: 0, commit: snapshot.index }
    this.snapshots = [snapshot]
    // Timeouts are only ever reached by whole elections' worth of ticks: the draw is the longest.
    this.raft = new Raft({ ...options, snapshot, hardState: this.hard, entries: [], random: (limit) => limit - 1 })
    this.shown = { role: this.raft.role, leader: this.raft.leader }
    this.lastStored = snapshot.index
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
  ready(): { text: string; parcels: Parcel[] } {
    const lines: string[] = []
    const soft = this.softChanged()
    const effects = this.raft.takeEffects()
    const { entries = [], snapshot } = effects.persist ?? {}
    const voteOrTerm = effects.hardState !== undefined && (effects.hardState.term !== this.hard.term || effects.hardState.vote !== this.hard.vote)
    const parcels = this.options.asynchronous ? this.asynchronousParcels(effects) : [...effects.messages, ...effects.gated]
    const empty = !soft && effects.hardState === undefined && entries.length + effects.committed.length + parcels.length === 0
    if (empty && snapshot === undefined && (this.options.asynchronous || effects.own.length === 0)) return { text: '<empty Ready>', parcels: [] }
    lines.push(`Ready MustSync=${entries.length > 0 || voteOrTerm}:`)
    if (soft) {
      this.shown = { role: effects.role, leader: effects.leader }
      lines.push(`Lead:${effects.leader} State:${roleName(effects.role)}`)
    }
    if (effects.hardState !== undefined) {
      lines.push(`HardState ${hardStateText(effects.hardState)}`)
      this.hard = effects.hardState
    }
    if (entries.length > 0) lines.push('Entries:', ...entries.map(entryText))
    if (snapshot !== undefined) lines.push(`Snapshot ${snapshotText(snapshot)}`)
    if (effects.committed.length > 0) lines.push('CommittedEntries:', ...effects.committed.map(entryText))
    const out = this.options.asynchronous ? this.asynchronousTexts(effects) : parcels.map((one) => parcelText(one))
    if (out.length > 0) lines.push('Messages:', ...out)
    if (!this.options.asynchronous) this.advance(effects)
    return { text: lines.join('\n'), parcels: this.options.asynchronous ? [...effects.messages] : parcels }
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

  // --- with the append and apply threads apart ---

  private asynchronousParcels(effects: Effects): Parcel[] {
    this.queueWork(effects)
    return [...effects.messages, ...(this.appendText === undefined ? [] : [{} as Message]), ...(this.applyText === undefined ? [] : [{} as Message])]
  }

  private appendText: string | undefined
  private applyText: string | undefined

  private asynchronousTexts(effects: Effects): string[] {
    const texts = effects.messages.map((one) => messageText(one))
    if (this.appendText !== undefined) texts.push(this.appendText)
    if (this.applyText !== undefined) texts.push(this.applyText)
    return texts
  }

  private queueWork(effects: Effects): void {
    const { id } = this.raft
    this.appendText = undefined
    this.applyText = undefined
    const { persist, hardState, gated, own, committed } = effects
    if (persist !== undefined) {
      const state = hardState === undefined ? '' : `${hardState.commit > 0 ? ` Commit:${hardState.commit}` : ''}${hardState.vote > 0 ? ` Vote:${hardState.vote}` : ''}`
      const text = `${id}->AppendThread MsgStorageAppend Term:${hardState?.term ?? 0} Log:0/0${state}${entriesText(persist.entries, '')}`
      const replies: Parcel[] = [...gated, ...own]
      if (persist.entries.length > 0) this.lastStored = persist.entries[persist.entries.length - 1]?.index as number
      if (this.hasUnstable(persist)) {
        const { index, term } = this.lastId()
        replies.push({ thread: 'append', to: id, sequence: persist.sequence, upTo: index, text: `AppendThread->${id} MsgStorageAppendResp Term:${this.raft.term} Log:${term}/${index}` })
      }
      this.appendWork.push({ text, effects, replies })
      const shown = replies.map((one) => `\n${parcelText(one, '  ')}`).join('')
      this.appendText = replies.length === 0 ? text : `${text} Responses:[${shown}\n]`
    }
    const last = committed[committed.length - 1]
    if (last !== undefined) {
      const text = `${id}->ApplyThread MsgStorageApply Term:0 Log:0/0${entriesText(committed, '')}`
      const reply: ThreadReply = { thread: 'apply', to: id, sequence: 0, upTo: last.index, text: `ApplyThread->${id} MsgStorageApplyResp Term:0 Log:0/0${entriesText(committed, '')}` }
      this.applyWork.push({ text, effects, replies: [reply] })
      this.applyText = `${text} Responses:[\n${parcelText(reply, '  ')}\n]`
    }
  }

  private storedUpTo = -1

  private hasUnstable(persist: { entries: readonly Entry[]; snapshot: SnapshotMeta | undefined }): boolean {
    if (this.storedUpTo < 0) this.storedUpTo = this.base.index
    return persist.entries.length > 0 || persist.snapshot !== undefined || this.lastStored > this.storedUpTo
  }

  private lastId(): { index: number; term: number } {
    const index = this.raft.lastIndex
    return { index, term: this.raft.termAt(index) as number }
  }

  /** Does one piece of work; returns how it is shown, and the replies to be delivered. */
  work(kind: 'append' | 'apply'): { text: string; parcels: readonly Parcel[] } {
    const work = (kind === 'append' ? this.appendWork : this.applyWork).shift()
    if (work === undefined) return { text: 'no work', parcels: [] }
    if (kind === 'append') this.append(work.effects)
    else this.apply(work.effects)
    const lines = ['Processing:', work.text, 'Responses:', ...work.replies.map((one) => parcelText(one))]
    if (kind === 'append' && !work.replies.some(isReply) && work.effects.persist !== undefined) {
      this.raft.stored(work.effects.persist.sequence)
    }
    return { text: lines.join('\n'), parcels: work.replies }
  }

  take(reply: ThreadReply): void {
    if (reply.thread === 'apply') this.raft.applied(reply.upTo)
    else {
      this.raft.stored(reply.sequence)
      this.storedUpTo = Math.max(this.storedUpTo, reply.upTo)
    }
  }
}
