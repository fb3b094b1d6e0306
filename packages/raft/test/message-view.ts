import type { Entry, Index, Message, MessageKind, NodeId, SnapshotMeta, Term } from '../src/index.js'

/** A message with the fields of all kinds; those that its own kind lacks are 0, false or empty. */
export interface MessageView {
  readonly kind: MessageKind
  readonly from: NodeId
  readonly to: NodeId
  readonly term: Term
  readonly index: Index
  readonly logTerm: Term
  readonly commit: Index
  readonly reject: boolean
  readonly hint: Index
  readonly context: number
  readonly entries: readonly Entry[]
  readonly snapshot: SnapshotMeta | undefined
}

const NO_FIELDS = { index: 0, logTerm: 0, commit: 0, reject: false, hint: 0, context: 0, entries: [] }

export function viewOf(message: Message): MessageView {
  return { ...NO_FIELDS, snapshot: undefined, ...message }
}
