import { LockState } from '@leasehold/core'
import type { SnapshotMeta } from '@leasehold/raft'
import { type ClusterMeta, decodeMeta, encodeMeta } from '../members.js'
import type { Clock, Logger } from '../platform.js'
import type { SnapshotToSave, StatePieces } from '../snapshots/snapshots.js'
import type { Storage } from '../storage.js'
import type { Applier } from './applier.js'
import { SnapshotMaker } from './snapshot-maker.js'
import type { Received } from './snapshot-transfer.js'

/** A snapshot of the leader that is durable here, ready to take the place of the state. */
export interface Installable {
  readonly received: Received
  readonly meta: ClusterMeta
  readonly state: LockState
}

export interface SnapshottingOptions {
  readonly storage: Storage
  readonly applier: Applier
  readonly log: Logger
  readonly clock: Clock
  /** Most bytes of a snapshot that are made in one go. */
  readonly sliceBytes: number
  /** Runs `action` as a part of the member: what it throws stops it. */
  readonly guard: (action: () => void) => void
  /** An own snapshot is durable; the log may be cut up to `cut`. */
  readonly taken: (meta: SnapshotMeta, cut: number) => void
}

/**
 * Own snapshots, which cut the log, and those of the leader. One at a time: an own one is made in slices, and then written
 * as a leader's is; while it is only being made, a leader's takes its place.
 */
export class Snapshotting {
  private making: SnapshotMaker | undefined
  private saving = false
  private last: number
  private next: (() => void) | undefined

  constructor(private readonly options: SnapshottingOptions) {
    this.last = options.storage.snapshot.index
  }

  /** A snapshot is being written. One that is being made need not be waited for: {@link Snapshotting.halt} drops it. */
  get busy(): boolean {
    return this.saving
  }

  /** Takes a snapshot if the log since the last one exceeds `bytesMax`, or the last one's size. */
  maybeTake(bytesMax: number, meta: ClusterMeta): void {
    const { storage, applier } = this.options
    if (applier.bytesSinceSnapshot >= Math.max(bytesMax, storage.snapshots.lastBytes)) this.take(meta)
  }

  /** Takes a snapshot now, if there is anything new and none is being written: a member that begins needs one. */
  take(meta: ClusterMeta): void {
    const { storage, applier, clock, sliceBytes, guard } = this.options
    if (this.making || this.saving || applier.index <= this.last) return
    const { index, term } = applier
    const encodedMeta = encodeMeta(meta)
    applier.bytesSinceSnapshot = 0
    const done = (state: StatePieces): void => {
      this.making = undefined
      this.save({ index, term, meta: encodedMeta, state }, (full) => {
        if (full) return this.options.log.warn('no room for a snapshot', { index })
        this.options.taken({ index, term, configuration: meta.configuration }, Math.min(storage.snapshots.cut, index))
      })
    }
    this.making = new SnapshotMaker(applier.state, { clock, sliceBytes, guard, done })
    this.making.start()
  }

  /** Makes a snapshot of the leader durable, after the one that is being written. `then` gets undefined when it cannot. */
  takeIn(received: Received, then: (installable: Installable | undefined) => void): void {
    if (this.saving) {
      this.next = () => this.takeIn(received, then)
      return
    }
    if (received.index <= this.last) return then(undefined)
    this.halt()
    // Read before it is written: what cannot be read must not become the newest snapshot.
    const installable = { received, meta: decodeMeta(received.meta), state: LockState.restore(received.state) }
    const { index, term, meta, state } = received
    this.save({ index, term, meta, state }, (full) => then(full ? undefined : installable))
  }

  /** Drops the snapshot that is being made. */
  halt(): void {
    this.making?.drop()
    this.making = undefined
  }

  private save(snapshot: SnapshotToSave, then: (full: boolean) => void): void {
    const { storage, guard } = this.options
    this.saving = true
    storage.snapshots.save(snapshot, (error) => {
      guard(() => {
        this.saving = false
        if (storage.snapshots.failure) throw storage.snapshots.failure
        if (!error) this.last = snapshot.index
        then(error !== undefined)
        const { next } = this
        this.next = undefined
        next?.()
      })
    })
  }
}
