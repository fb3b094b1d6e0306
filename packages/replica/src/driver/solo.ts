import type { Configuration, Entry, HardState, Index, SnapshotMeta } from '@leasehold/raft'
import { assert } from '../assert.js'
import type { Consensus, Effects, ReadReady } from './consensus.js'

export interface SoloOptions {
  readonly node: number
  readonly snapshot: SnapshotMeta
  readonly hardState: HardState
  /** The log after the snapshot. */
  readonly entries: readonly Entry[]
}

/** Consensus of one voter: what is durable is committed. The same effects, in the same order, as for many. */
export class Solo implements Consensus {
  role: Consensus['role'] = 'follower'
  term: number
  commit: Index
  readonly configuration: Configuration
  private vote: number
  private last: Index
  private stored: Index
  private handed: Index
  private termStart = 0
  private sequence = 0
  private readonly unstable: Entry[] = []
  private changed = false
  private readonly suffix: Entry[]
  private readonly persisting: { readonly sequence: number; readonly last: Index }[] = []
  private reads: ReadReady[] = []

  constructor(private readonly options: SoloOptions) {
    const { snapshot, hardState, entries } = options
    this.configuration = snapshot.configuration
    this.term = hardState.term
    this.vote = hardState.vote
    this.commit = hardState.commit
    this.last = this.stored = snapshot.index + entries.length
    this.handed = snapshot.index
    this.suffix = [...entries]
  }

  get leader(): number {
    return this.role === 'leader' ? this.options.node : 0
  }

  tick(): void {
    if (this.role !== 'leader') this.campaign()
  }

  campaign(): void {
    if (this.role === 'leader') return
    this.term++
    this.vote = this.options.node
    this.role = 'leader'
    this.termStart = this.append(new Uint8Array(0))
  }

  propose(data: Uint8Array): Index | undefined {
    return this.role === 'leader' ? this.append(data) : undefined
  }

  read(context: number): void {
    assert(this.role === 'leader', 'a read without a leader')
    this.reads.push({ context, index: Math.max(this.commit, this.termStart) })
  }

  persisted(sequence: number): void {
    const done = this.persisting.shift()
    assert(done?.sequence === sequence, () => `persisted ${sequence} where ${done?.sequence} follows`)
    this.stored = done.last
    // Only an entry of the current term commits by counting; those before go with it (thesis 3.6.2).
    if (this.stored >= this.termStart) this.commit = this.stored
  }

  applied(_index: Index): void {}

  applyConfiguration(): void {}

  compact(index: Index): void {
    const first = this.suffix[0]?.index ?? 0
    if (first > 0 && index >= first) this.suffix.splice(0, index - first + 1)
  }

  takeEffects(): Effects {
    const entries = this.unstable.splice(0)
    let persist: Effects['persist']
    if (entries.length > 0 || this.changed) {
      this.sequence++
      this.persisting.push({ sequence: this.sequence, last: this.last })
      persist = {
        sequence: this.sequence,
        hardState: { term: this.term, vote: this.vote, commit: this.commit },
        entries,
      }
      this.changed = false
    }
    const first = this.suffix[0]?.index ?? 0
    const committed = first === 0 ? [] : this.suffix.slice(this.handed + 1 - first, this.commit + 1 - first)
    this.handed = this.commit
    const { reads } = this
    this.reads = []
    return { persist, committed, reads }
  }

  private append(data: Uint8Array): Index {
    const entry: Entry = { term: this.term, index: ++this.last, kind: 'normal', data }
    this.unstable.push(entry)
    this.suffix.push(entry)
    this.changed = true
    return entry.index
  }
}
