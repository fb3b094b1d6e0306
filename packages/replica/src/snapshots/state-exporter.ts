import type { Index } from '@leasehold/core'
import type { Term } from '@leasehold/raft'
import type { ClusterMeta } from '../cluster-meta.js'
import type { StatePieces } from './snapshot-store.js'
import type { Applier } from '../driver/applier.js'
import type { SliceOptions } from './sliced-work.js'
import { SnapshotMaker } from './state-encoder.js'

/** The state of one entry, written down. */
export interface WrittenState {
  readonly index: Index
  readonly term: Term
  readonly epoch: number
  readonly meta: ClusterMeta
  /** Hash of the lock state. */
  readonly hash: string
  readonly state: StatePieces
}

/** A wish for the state as it is at the time of the wish, or later. */
export interface StateWish {
  /** May run inside the call that was given the wish. */
  readonly written: (state: WrittenState) => void
  /** The member has stopped before. */
  readonly halted?: () => void
}

export interface StateWriterOptions extends SliceOptions {
  readonly applier: Applier
  readonly meta: () => ClusterMeta
}

/**
 * Writes the lock state down in slices for whoever needs it: the own snapshot, peers, backups. One at a time: who comes
 * while one is being written gets the next, together with everybody else who waits, so that nobody gets an older state than
 * that of his wish. Wishes are as many as their callers allow: one for the own snapshot, one per peer, and some backups.
 */
export class StateWriter {
  private waiting: StateWish[] = []
  private writing: { readonly wishes: StateWish[]; readonly maker: SnapshotMaker } | undefined

  constructor(private readonly options: StateWriterOptions) {}

  want(wish: StateWish): void {
    this.waiting.push(wish)
    if (!this.writing) this.next()
  }

  /** Takes a wish back. What nobody wants any more is not finished. */
  drop(wish: StateWish): void {
    this.waiting = this.waiting.filter((one) => one !== wish)
    const { writing } = this
    const at = writing?.wishes.indexOf(wish) ?? -1
    if (!writing || at < 0) return
    writing.wishes.splice(at, 1)
    if (writing.wishes.length > 0) return
    writing.maker.drop()
    this.next()
  }

  halt(): void {
    const wishes = [...(this.writing?.wishes ?? []), ...this.waiting]
    this.writing?.maker.drop()
    this.writing = undefined
    this.waiting = []
    for (const { halted } of wishes) halted?.()
  }

  private next(): void {
    this.writing = undefined
    if (this.waiting.length === 0) return
    const { applier, meta, clock, sliceBytes, guard } = this.options
    const { state, index, term } = applier
    const facts = { index, term, epoch: state.epoch, meta: meta(), hash: state.hash() }
    const wishes = this.waiting
    this.waiting = []
    const done = (pieces: StatePieces): void => {
      this.next()
      for (const { written } of wishes) written({ ...facts, state: pieces })
    }
    const maker = new SnapshotMaker(state, { clock, sliceBytes, guard, done })
    this.writing = { wishes, maker }
    maker.start()
  }
}
