import type { Index } from '@leasehold/core'
import type { Term } from '@leasehold/raft'
import type { ClusterMeta } from '../cluster-meta.js'
import type { StatePieces } from './snapshot-store.js'
import type { Applier } from '../driver/applier.js'
import type { SliceOptions } from './sliced-work.js'
import { StateEncoder } from './state-encoder.js'

/** The encoded state after one entry. */
export interface EncodedState {
  readonly index: Index
  readonly term: Term
  readonly epoch: number
  readonly meta: ClusterMeta
  /** Hash of the lock state. */
  readonly hash: string
  readonly state: StatePieces
}

/** A request for the state as of the request or later. */
export interface ExportRequest {
  /** Runs when the state is encoded, possibly inside {@link StateExporter.request}. */
  readonly exported: (state: EncodedState) => void
  /** Runs when the member stops before the state is encoded. */
  readonly halted?: () => void
}

export interface StateExporterOptions extends SliceOptions {
  readonly applier: Applier
  readonly meta: () => ClusterMeta
}

/**
 * Encodes the lock state in slices for own snapshots, peers and backups, one at a time. Requests that arrive during an export
 * share the next one, so a request never receives a state older than the request itself. The number of requests is bounded by
 * the callers: one for the own snapshot, one per peer, and a limited number of backups.
 */
export class StateExporter {
  readonly #options: StateExporterOptions
  #waiting: ExportRequest[] = []
  #current: { readonly requests: ExportRequest[]; readonly encoder: StateEncoder } | undefined

  constructor(options: StateExporterOptions) {
    this.#options = options
  }

  request(request: ExportRequest): void {
    this.#waiting.push(request)
    if (!this.#current) this.#startNext()
  }

  /** Cancels a request. An export without requests is stopped. */
  cancel(request: ExportRequest): void {
    this.#waiting = this.#waiting.filter((one) => one !== request)
    const current = this.#current
    const at = current?.requests.indexOf(request) ?? -1
    if (!current || at < 0) return
    current.requests.splice(at, 1)
    if (current.requests.length > 0) return
    current.encoder.cancel()
    this.#startNext()
  }

  halt(): void {
    const requests = [...(this.#current?.requests ?? []), ...this.#waiting]
    this.#current?.encoder.cancel()
    this.#current = undefined
    this.#waiting = []
    for (const { halted } of requests) halted?.()
  }

  #startNext(): void {
    this.#current = undefined
    if (this.#waiting.length === 0) return
    const { applier, meta, clock, sliceBytes, guard } = this.#options
    const { state, index, term } = applier
    const facts = { index, term, epoch: state.epoch, meta: meta(), hash: state.hash() }
    const requests = this.#waiting
    this.#waiting = []
    const done = (pieces: StatePieces): void => {
      this.#startNext()
      for (const { exported } of requests) exported({ ...facts, state: pieces })
    }
    const encoder = new StateEncoder(state, { clock, sliceBytes, guard, done })
    this.#current = { requests: requests, encoder: encoder }
    encoder.start()
  }
}
