import { assert } from './assert.js'
import type { RaftState } from './raft-state.js'
import type { Index, NodeId, Term } from './types.js'

/** Values that never decrease, and the vote, which never changes within a term. */
export interface Watermarks {
  readonly term: Term
  readonly vote: NodeId
  readonly commit: Index
  readonly applied: Index
}

export function watermarksOf(state: RaftState): Watermarks {
  return { term: state.term, vote: state.vote, commit: state.log.committed, applied: state.log.applied }
}

/** Checks the local invariants. Runs after each input, also in production: it is cheap and stops most bugs at their source. */
export function checkInvariants(state: RaftState, before: Watermarks): Watermarks {
  const { log, term, vote } = state
  // One expression for the common case, since this runs after every input.
  const { committed, applied, applying, lastIndex } = log
  const isSound =
    term >= before.term &&
    (term > before.term || before.vote === 0 || vote === before.vote) &&
    committed >= before.commit &&
    applied >= before.applied &&
    applied <= applying &&
    applying <= committed &&
    committed <= lastIndex &&
    log.durable <= lastIndex &&
    log.firstIndex - 1 <= committed &&
    (state.role !== 'leader' || isSoundLeader(state))
  if (!isSound) explain(state, before)
  const same = before.term === term && before.vote === vote && before.commit === committed && before.applied === applied
  return same ? before : watermarksOf(state)
}

/** Throws for the invariant that is broken. */
function explain(state: RaftState, before: Watermarks): void {
  const { log, term, vote } = state
  const where = () => `node ${state.id}, ${state.role}, term ${term}, commit ${log.committed}, last ${log.lastIndex}`
  assert(term >= before.term, () => `the term went back from ${before.term} (${where()})`)
  assert(
    term > before.term || before.vote === 0 || vote === before.vote,
    () => `the vote of term ${term} changed from ${before.vote} to ${vote} (${where()})`,
  )
  assert(log.committed >= before.commit, () => `commit went back from ${before.commit} (${where()})`)
  assert(log.applied >= before.applied, () => `applied went back from ${before.applied} (${where()})`)
  assert(
    log.applied <= log.applying && log.applying <= log.committed,
    () => `applied ${log.applied} ≤ applying ${log.applying} ≤ commit? (${where()})`,
  )
  assert(
    log.committed <= log.lastIndex && log.durable <= log.lastIndex,
    () => `commit or durable ${log.durable} beyond the log (${where()})`,
  )
  assert(
    log.firstIndex - 1 <= log.committed,
    () => `the log begins at ${log.firstIndex}, after its commit (${where()})`,
  )
  if (state.role === 'leader') checkLeader(state, where)
}

function isSoundLeader(state: RaftState): boolean {
  if (state.leader !== state.id) return false
  const { lastIndex } = state.log
  for (const { match, next, inflights } of state.tracked.progress.values()) {
    if (match >= next || match > lastIndex || inflights.count > state.limits.inflightsMax) return false
  }
  return true
}

function checkLeader(state: RaftState, where: () => string): void {
  assert(state.leader === state.id, () => `a leader that follows ${state.leader} (${where()})`)
  for (const [id, progress] of state.tracked.progress) {
    assert(
      progress.match < progress.next,
      () => `peer ${id}: match ${progress.match}, next ${progress.next} (${where()})`,
    )
    assert(progress.match <= state.log.lastIndex, () => `peer ${id} matches ${progress.match} (${where()})`)
    assert(
      progress.inflights.count <= state.limits.inflightsMax,
      () => `peer ${id}: ${progress.inflights.count} in flight (${where()})`,
    )
  }
}
