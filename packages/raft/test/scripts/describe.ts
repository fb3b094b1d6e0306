import type { Entry, HardState, Message, MessageKind, Progress, Role, SnapshotMeta } from '../../src/index.js'
import { viewOf } from '../message-view.js'

/** The notation of the scripts: messages, entries and states as their files write them. */

export const KIND_NAMES: Record<MessageKind, string> = {
  append: 'MsgApp',
  appendReply: 'MsgAppResp',
  vote: 'MsgVote',
  voteReply: 'MsgVoteResp',
  preVote: 'MsgPreVote',
  preVoteReply: 'MsgPreVoteResp',
  heartbeat: 'MsgHeartbeat',
  heartbeatReply: 'MsgHeartbeatResp',
  snapshot: 'MsgSnap',
  timeoutNow: 'MsgTimeoutNow',
  propose: 'MsgProp',
  readIndex: 'MsgReadIndex',
  readIndexReply: 'MsgReadIndexResp',
  transferLeader: 'MsgTransferLeader',
}

const ROLE_NAMES: Record<Role, string> = {
  follower: 'StateFollower',
  preCandidate: 'StatePreCandidate',
  candidate: 'StateCandidate',
  leader: 'StateLeader',
}

export function roleName(role: Role): string {
  return ROLE_NAMES[role]
}

/** A configuration change of the first kind carries this in its context, so that it is written as such. */
export const FIRST_KIND = 1

export function entryText(entry: Entry): string {
  const id = `${entry.term}/${entry.index}`
  if (entry.kind === 'normal') return `${id} EntryNormal ${JSON.stringify(String.fromCharCode(...entry.data))}`
  const letters = { addVoter: 'v', addLearner: 'l', remove: 'r', update: 'u' }
  const steps = entry.change.steps.map((step) => ` ${letters[step.kind]}${step.node}`).join('')
  return `${id} EntryConfChange${entry.change.context[0] === FIRST_KIND ? '' : 'V2'}${steps}`
}

export function entriesText(entries: readonly Entry[], indent: string): string {
  if (entries.length === 0) return ''
  if (entries.length === 1) return ` Entries:[${entryText(entries[0] as Entry)}]`
  return ` Entries:[${entries.map((entry) => `\n${indent}  ${entryText(entry)}`).join('')}\n${indent}]`
}

export function messageText(message: Message, indent = ''): string {
  const view = viewOf(message)
  const { from, to, kind, term, index, reject, hint, entries, snapshot } = view
  // The scripts' core does not say in a refused vote what is committed (docs/divergence.md).
  const refused = reject && (kind === 'voteReply' || kind === 'preVoteReply')
  const { commit, logTerm } = refused ? { commit: 0, logTerm: 0 } : view
  const head = `${indent}${from}->${to} ${KIND_NAMES[kind]} Term:${term} Log:${logTerm}/${index}`
  const rejected = reject ? ` Rejected (Hint: ${hint})` : ''
  const committed = commit > 0 ? ` Commit:${commit}` : ''
  const snap = snapshot === undefined ? '' : `\n${indent}  Snapshot: ${snapshotText(snapshot)}`
  return head + rejected + committed + entriesText(entries, indent) + snap
}

export function snapshotText({ index, term, configuration: c }: SnapshotMeta): string {
  const list = (ids: readonly number[]) => `[${ids.join(' ')}]`
  return (
    `Index:${index} Term:${term} ConfState:Voters:${list(c.voters)} VotersOutgoing:${list(c.votersOutgoing)} ` +
    `Learners:${list(c.learners)} LearnersNext:${list(c.learnersNext)} AutoLeave:${c.autoLeave}`
  )
}

export function hardStateText({ term, vote, commit }: HardState): string {
  return `Term:${term}${vote === 0 ? '' : ` Vote:${vote}`} Commit:${commit}`
}

export function progressText(progress: Progress): string {
  const state = { probe: 'StateProbe', replicate: 'StateReplicate', snapshot: 'StateSnapshot' }[progress.state]
  const { count, full } = progress.inflights
  return [
    `${state} match=${progress.match} next=${progress.next}`,
    progress.isLearner ? ' learner' : '',
    progress.isPaused ? ' paused' : '',
    progress.pendingSnapshot > 0 ? ` pendingSnap=${progress.pendingSnapshot}` : '',
    progress.recentlyActive ? '' : ' inactive',
    count > 0 ? ` inflight=${count}${full ? '[full]' : ''}` : '',
  ].join('')
}
