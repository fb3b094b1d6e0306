import { assert, CodecError, LockState } from '@leasehold/core'
import type { Index, SnapshotMeta } from '@leasehold/raft'
import { type ClusterMeta, decodeMeta, encodeMeta } from '../cluster-meta.js'
import type { Logger } from '../platform.js'
import type { SnapshotToSave } from './snapshot-store.js'
import type { Storage } from '../storage/storage.js'
import type { Applier } from '../driver/applier.js'
import { type SliceOptions, SlicedWork } from './sliced-work.js'
import type { ReceivedSnapshot } from './snapshot-transfer.js'
import type { ExportRequest, StateExporter } from './state-exporter.js'

/** A snapshot from the leader that is durable here and ready to be installed. */
export interface Installable {
  readonly received: ReceivedSnapshot
  readonly meta: ClusterMeta
  readonly state: LockState
}

/**
 * The outcome of a leader's snapshot: durable and installable; `known`: the log already covers it; `failed`: it is unreadable,
 * or the disk has no room.
 */
export type ReceiveOutcome = Installable | 'known' | 'failed'

export interface SnapshotManagerOptions extends SliceOptions {
  readonly storage: Storage
  readonly applier: Applier
  readonly exporter: StateExporter
  readonly log: Logger
  /** The highest index known to be committed. A snapshot up to here contains nothing new. */
  readonly committed: () => Index
  /** Runs when an own snapshot is durable. The log may be compacted up to `cut`. */
  readonly saved: (meta: SnapshotMeta, cut: number) => void
}

/**
 * Saves this member's own snapshots, which allow log compaction, and those from the leader. One at a time: an own snapshot is
 * encoded in slices and then written; one from the leader is decoded in slices and then written. A snapshot from the leader
 * cancels an own one that is still being encoded.
 */
export class SnapshotManager {
  readonly #options: SnapshotManagerOptions
  #request: ExportRequest | undefined
  #reading: SlicedWork | undefined
  #isSaving = false
  #lastIndex: number
  #pendingReceive: (() => void) | undefined

  constructor(options: SnapshotManagerOptions) {
    this.#options = options
    this.#lastIndex = options.storage.snapshot.index
  }

  /** Whether a snapshot is being written. One that is being encoded or decoded is dropped by {@link SnapshotManager.halt}. */
  get isBusy(): boolean {
    return this.#isSaving
  }

  /** Takes a snapshot if the log since the last one exceeds `bytesMax`, or the last one's size. */
  maybeTake(bytesMax: number): void {
    const { storage, applier } = this.#options
    if (applier.bytesSinceSnapshot >= Math.max(bytesMax, storage.snapshots.lastBytes)) this.take()
  }

  /** Takes a snapshot now, if there is anything new and none is in progress. */
  take(): void {
    const { storage, applier, exporter } = this.#options
    if (this.#request || this.#reading || this.#isSaving || applier.index <= this.#lastIndex) return
    const bytes = applier.bytesSinceSnapshot
    this.#request = {
      exported: ({ index, term, meta, state }) => {
        this.#request = undefined
        this.#save({ index, term, meta: encodeMeta(meta), state }, (full) => {
          // Only now: a snapshot that is cancelled for another one, which may fail, must not delay the next.
          applier.bytesSinceSnapshot -= bytes
          if (full) return this.#options.log.warn('no room for a snapshot', { index })
          this.#options.saved(
            { index, term, configuration: meta.configuration },
            Math.min(storage.snapshots.compactableIndex, index),
          )
        })
      },
    }
    exporter.request(this.#request)
  }

  /**
   * Saves a snapshot from the leader, after the one that is being written. `then` must install it within its call: a durable
   * snapshot that the log does not cover would block every later one with the same index.
   */
  receiveSnapshot(received: ReceivedSnapshot, then: (outcome: ReceiveOutcome) => void): void {
    if (this.#isSaving) {
      this.#pendingReceive = () => this.receiveSnapshot(received, then)
      return
    }
    if (this.#isCovered(received)) return then('known')
    this.halt()
    // Decoded before it is written: an unreadable snapshot must not become the newest one.
    this.#read(received, (installable) => {
      if (!installable) return then('failed')
      if (this.#isCovered(received)) return then('known')
      const { index, term, meta, state, checksum } = received
      const pieces = { pieces: [state], bytes: state.length, checksum }
      this.#save({ index, term, meta, state: pieces }, (full) => then(full ? 'failed' : installable))
    })
  }

  /** Whether the log already covers a snapshot. It may have caught up while the snapshot waited. */
  #isCovered({ index }: ReceivedSnapshot): boolean {
    const committed = this.#options.committed()
    assert(
      this.#lastIndex <= committed,
      () => `snapshot ${this.#lastIndex} is durable, but only ${committed} is committed`,
    )
    return index <= committed
  }

  /** Drops the snapshot that is being encoded or decoded. */
  halt(): void {
    if (this.#request) this.#options.exporter.cancel(this.#request)
    this.#request = undefined
    this.#reading?.stop()
    this.#reading = undefined
  }

  #read(received: ReceivedSnapshot, then: (installable: Installable | undefined) => void): void {
    const restoring = LockState.beginRestore(received.state)
    this.#reading = new SlicedWork(this.#options, (bytes) => {
      let installable: Installable | undefined
      try {
        const state = restoring.step(bytes)
        if (state === undefined) return false
        installable = { received, meta: decodeMeta(received.meta), state }
      } catch (error) {
        if (!(error instanceof CodecError)) throw error
        const { index, from } = received
        this.#options.log.error('a snapshot of the leader cannot be read', { index, from, why: error.message })
      }
      this.#reading = undefined
      then(installable)
      return true
    })
    this.#reading.start()
  }

  #save(snapshot: SnapshotToSave, then: (full: boolean) => void): void {
    const { storage, guard } = this.#options
    this.#isSaving = true
    storage.snapshots.save(snapshot, (error) => {
      guard(() => {
        this.#isSaving = false
        if (storage.snapshots.failure) throw storage.snapshots.failure
        if (!error) this.#lastIndex = snapshot.index
        then(error !== undefined)
        const pendingReceive = this.#pendingReceive
        this.#pendingReceive = undefined
        pendingReceive?.()
      })
    })
  }
}
