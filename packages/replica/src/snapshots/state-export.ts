import type { Index, LockState, Refused } from '@leasehold/core'

/** The lock state of one entry, written down. */
export interface StateExport {
  readonly index: Index
  readonly epoch: number
  /** Hash of the state. */
  readonly hash: string
  /** Length of all pieces together. */
  readonly bytes: number
  readonly pieces: readonly Uint8Array[]
}

/** A copy; refused when the member stops before it is whole. */
export type ExportResult = StateExport | { readonly refused: Refused }

/** A copy in one go, for whoever has nothing else to do meanwhile. */
export function exportAtOnce(state: LockState): StateExport {
  const bytes = state.snapshot()
  return { index: state.index, epoch: state.epoch, hash: state.hash(), bytes: bytes.length, pieces: [bytes] }
}
