import { assert } from './assert.js'
import { entryBytes } from './messages.js'
import type { Entry, Index, SnapshotMeta, Term } from './types.js'

const NOTHING: readonly Entry[] = []

export interface EntryId {
  readonly term: Term
  readonly index: Index
}

/**
 * The log after the last snapshot, all of it in memory. Its watermarks:
 *
 *   base ≤ durable ≤ writing (handed out to be written) ≤ last,  applied ≤ applying ≤ committed ≤ last
 *
 * Only completed writes raise `durable`. A completed write does not make durable what was overwritten while it was under way:
 * each write keeps the range of it that is still valid.
 */
export class RaftLog {
  #entries: Entry[] = []
  #base: EntryId
  /** The highest index known to be committed. Never decreases; nothing at or below it is replaced. */
  committed: Index
  /** The highest index that was handed to the program to apply. */
  applying: Index
  /** The highest index that the program has applied. Never decreases. */
  applied: Index
  /** The highest index known to be durable here; lowered when entries at or below it are replaced. */
  durable: Index
  #writing: Index
  /** A leader's snapshot that is not durable yet. Nothing is applied until it is. */
  pendingSnapshot: SnapshotMeta | undefined
  #snapshotHanded = false
  #writes: { readonly sequence: number; last: Index; readonly snapshot: Index }[] = []

  constructor(snapshot: EntryId, entries: readonly Entry[], commit: Index) {
    this.#base = { term: snapshot.term, index: snapshot.index }
    this.#entries = [...entries]
    const last = snapshot.index + entries.length
    entries.forEach((entry, i) => {
      assert(entry.index === snapshot.index + 1 + i, () => `entry ${entry.index} at place ${i} after ${snapshot.index}`)
    })
    assert(commit <= last, () => `commit ${commit} is beyond the last entry ${last}: an acknowledged tail is lost`)
    this.committed = Math.max(commit, snapshot.index)
    this.applying = snapshot.index
    this.applied = snapshot.index
    this.durable = last
    this.#writing = last
  }

  get firstIndex(): Index {
    return this.#base.index + 1
  }

  get lastIndex(): Index {
    return this.#base.index + this.#entries.length
  }

  get lastId(): EntryId {
    const last = this.#entries[this.#entries.length - 1]
    return last === undefined ? this.#base : { term: last.term, index: last.index }
  }

  get length(): number {
    return this.#entries.length
  }

  entry(index: Index): Entry | undefined {
    return this.#entries[index - this.#base.index - 1]
  }

  /** The term at `index`; undefined if the entry is compacted or does not exist. */
  termAt(index: Index): Term | undefined {
    if (index === this.#base.index) return this.#base.term
    return this.entry(index)?.term
  }

  matches(id: EntryId): boolean {
    return this.termAt(id.index) === id.term
  }

  /** The term of the committed entry at `index`, or an upper bound of it if it is compacted. */
  termAtMost(index: Index): Term {
    return this.termAt(index) ?? this.#base.term
  }

  /**
   * Checks that a leader's log agrees with what is committed here. A leader has every committed entry, so a leader with a
   * different one was elected without this member's history: a disk was rolled back. An append after the commit index costs
   * nothing.
   */
  assertAgrees(previous: EntryId, entries: readonly Entry[]): void {
    if (previous.index > this.committed) return
    this.#assertSame(previous)
    for (const entry of entries) {
      if (entry.index > this.committed) return
      this.#assertSame(entry)
    }
  }

  #assertSame({ index, term }: EntryId): void {
    const ours = this.termAt(index)
    assert(
      ours === term || (ours === undefined && term <= this.#base.term),
      () =>
        `the leader has an entry ${index} of term ${term} that conflicts with a committed one here, of term ${this.termAtMost(index)}: a member of this cluster was started on an older copy of its disk`,
    )
  }

  /** Whether a log that ends in `id` is at least as up to date as this one (thesis 3.6.1). */
  isUpToDate(id: EntryId): boolean {
    const last = this.lastId
    return id.term > last.term || (id.term === last.term && id.index >= last.index)
  }

  /** Returns entries from `from` on: as many as fit into `bytesMax`, and at least one if there is one. */
  slice(from: Index, bytesMax: number, to: Index = this.lastIndex): readonly Entry[] {
    const start = from - this.#base.index - 1
    assert(start >= 0, () => `entries from ${from} are compacted up to ${this.#base.index}`)
    const end = to - this.#base.index
    let bytes = 0
    let stop = start
    while (stop < end) {
      bytes += entryBytes(this.#entries[stop] as Entry)
      if (stop > start && bytes > bytesMax) break
      stop++
    }
    return start >= stop ? [] : this.#entries.slice(start, stop)
  }

  /** Appends entries, which replace the log from the first one's index on. */
  append(entries: readonly Entry[]): void {
    const first = entries[0]
    if (first === undefined) return
    assert(first.index > this.committed, () => `entry ${first.index} would replace a committed one (${this.committed})`)
    assert(first.index <= this.lastIndex + 1, () => `a hole between ${this.lastIndex} and ${first.index}`)
    if (first.index <= this.lastIndex) {
      this.#entries.length = first.index - this.#base.index - 1
      this.durable = Math.min(this.durable, first.index - 1)
      this.#writing = Math.min(this.#writing, first.index - 1)
      for (const write of this.#writes) write.last = Math.min(write.last, first.index - 1)
    }
    for (const entry of entries) this.#entries.push(entry)
  }

  /** Appends at a follower (figure 3.1). Returns the index that matches now, or undefined if `previous` does not match. */
  maybeAppend(previous: EntryId, entries: readonly Entry[], commit: Index): Index | undefined {
    if (!this.matches(previous)) return undefined
    const lastNew = previous.index + entries.length
    const conflict = entries.findIndex((entry) => this.termAt(entry.index) !== entry.term)
    if (conflict >= 0) {
      const at = (entries[conflict] as Entry).index
      assert(at > this.committed, () => `entry ${at} conflicts with a committed one (${this.committed})`)
      this.append(entries.slice(conflict))
    }
    // Only what this append covers is known to be in the leader's log, not a stale tail behind it.
    this.commitTo(Math.min(commit, lastNew))
    return lastNew
  }

  /**
   * Returns the last index at or below `index` whose term is at most `term`, and that term: where two logs may agree. The term
   * is 0 if the entry is compacted.
   */
  findConflictByTerm(index: Index, term: Term): EntryId {
    for (let at = index; at > 0; at--) {
      const ours = this.termAt(at)
      if (ours === undefined) return { index: at, term: 0 }
      if (ours <= term) return { index: at, term: ours }
    }
    return { index: 0, term: 0 }
  }

  commitTo(index: Index): void {
    if (index <= this.committed) return
    assert(
      index <= this.lastIndex,
      () => `commit ${index} is beyond the last entry ${this.lastIndex}: an acknowledged tail is lost`,
    )
    this.committed = index
  }

  /** Replaces the whole log by a snapshot. */
  restore(meta: SnapshotMeta): void {
    assert(meta.index > this.committed, () => `snapshot ${meta.index} is not ahead of commit ${this.committed}`)
    this.#entries = []
    this.#base = { term: meta.term, index: meta.index }
    this.committed = meta.index
    this.durable = meta.index
    this.#writing = meta.index
    this.#writes = this.#writes.map((write) => ({ ...write, last: 0 }))
    this.pendingSnapshot = meta
    this.#snapshotHanded = false
  }

  get snapshotToWrite(): SnapshotMeta | undefined {
    return this.#snapshotHanded ? undefined : this.pendingSnapshot
  }

  get hasUnwritten(): boolean {
    return this.#writing < this.lastIndex || this.snapshotToWrite !== undefined
  }

  get isWriting(): boolean {
    return this.#writes.length > 0
  }

  /** Entries that were not handed out to be written yet. */
  unwritten(): readonly Entry[] {
    return this.#writing < this.lastIndex ? this.#entries.slice(this.#writing - this.#base.index) : NOTHING
  }

  /** Marks what is unwritten as under way in write `sequence`. */
  beginWrite(sequence: number): void {
    this.#writes.push({ sequence, last: this.lastIndex, snapshot: this.snapshotToWrite?.index ?? 0 })
    this.#writing = this.lastIndex
    if (this.pendingSnapshot !== undefined) this.#snapshotHanded = true
  }

  /** Marks write `sequence` and all before it as durable. */
  written(sequence: number): void {
    while (this.#writes.length > 0 && (this.#writes[0] as { sequence: number }).sequence <= sequence) {
      const write = this.#writes.shift() as { last: Index; snapshot: Index }
      if (write.last > this.durable) this.durable = write.last
      const pending = this.pendingSnapshot
      if (pending !== undefined && this.#snapshotHanded && write.snapshot === pending.index) {
        this.pendingSnapshot = undefined
        this.#snapshotHanded = false
        this.applying = Math.max(this.applying, pending.index)
        this.applied = Math.max(this.applied, pending.index)
      }
    }
  }

  /** Returns committed entries to apply: only durable ones, unless `unwritten` allows others. */
  nextCommitted(unwritten: boolean, bytesMax: number): readonly Entry[] {
    if (!this.hasNextCommitted(unwritten)) return NOTHING
    return this.slice(this.applying + 1, bytesMax, this.#appliable(unwritten))
  }

  hasNextCommitted(unwritten: boolean): boolean {
    return this.pendingSnapshot === undefined && this.#appliable(unwritten) > this.applying
  }

  #appliable(unwritten: boolean): Index {
    return Math.min(this.committed, unwritten ? this.lastIndex : this.durable)
  }

  applyTo(index: Index): void {
    assert(
      index >= this.applied && index <= this.applying,
      () => `applied ${index}, between ${this.applied} and ${this.applying}?`,
    )
    this.applied = index
  }

  /** Drops entries up to `index`, which a snapshot of the program covers. */
  compact(index: Index): void {
    assert(index <= this.applied, () => `compacting to ${index}, applied only ${this.applied}`)
    if (index <= this.#base.index) return
    const term = this.termAt(index)
    assert(term !== undefined, () => `no entry ${index} to compact to`)
    this.#entries = this.#entries.slice(index - this.#base.index)
    this.#base = { term, index }
  }
}
