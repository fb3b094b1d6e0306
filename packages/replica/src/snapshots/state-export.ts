import type { Index, LockState, Refused } from '@leasehold/core'

/** The encoded lock state after one entry. */
export interface StateExport {
  readonly index: Index
  readonly epoch: number
  /** Hash of the state. */
  readonly hash: string
  /** Length of all pieces together. */
  readonly bytes: number
  readonly pieces: readonly Uint8Array[]
}

/** An export, or a refusal when the member stops before it is complete. */
export type ExportResult = StateExport | { readonly refused: Refused }

/** Exports the state in one blocking step. */
export function exportAtOnce(state: LockState): StateExport {
  const bytes = state.snapshot()
  return { index: state.index, epoch: state.epoch, hash: state.hash(), bytes: bytes.length, pieces: [bytes] }
}
