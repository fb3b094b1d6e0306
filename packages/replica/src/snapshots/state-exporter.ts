import type { Index } from '@leasehold/core'
import type { Term } from '@leasehold/raft'
import type { ClusterMeta } from '../cluster-meta.js'
import type { StatePieces } from './snapshot-store.js'
import type { Applier } from '../driver/applier.js'
import type { SliceOptions } from './sliced-work.js'
import { StateEncoder } from './state-encoder.js'

/** The state of one entry, written down. */
export interface EncodedState {
  readonly index: Index
  readonly term: Term
  readonly epoch: number
  readonly meta: ClusterMeta
  /** Hash of the lock state. */
  readonly hash: string
  readonly state: StatePieces
}

/** A request for the state as it is at the time of the request, or later. */
export interface ExportRequest {
  /** May run inside the call that was given the request. */
  readonly exported: (state: EncodedState) => void
  /** The member has stopped before. */
  readonly halted?: () => void
}

export interface StateExporterOptions extends SliceOptions {
  readonly applier: Applier
  readonly meta: () => ClusterMeta
}

/**
 * Writes the lock state down in slices for whoever needs it: the own snapshot, peers, backups. One at a time: who comes
 * while one is being written gets the next, together with everybody else who waits, so that nobody gets an older state than
 * that of his request. Wishes are as many as their callers allow: one for the own snapshot, one per peer, and some backups.
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

  /** Takes a request back. What nobody wants any more is not finished. */
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
