import { assert } from './assert.js'
import type { Core } from './raft-state.js'
import type { Index, NodeId, Term } from './types.js'

/** What may only move one way. */
export interface Watermarks {
  readonly term: Term
  readonly vote: NodeId
  readonly commit: Index
  readonly applied: Index
}

export function watermarksOf(core: Core): Watermarks {
  return { term: core.term, vote: core.vote, commit: core.log.committed, applied: core.log.applied }
}

/** Checked after each input, also in production: cheap, local, and enough to stop most bugs at their source. */
export function checkInvariants(core: Core, before: Watermarks): Watermarks {
  const { log, term, vote } = core
  // Everything at once first: this runs after every input.
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
    (core.role !== 'leader' || isSoundLeader(core))
  if (!isSound) explain(core, before)
  const same = before.term === term && before.vote === vote && before.commit === committed && before.applied === applied
  return same ? before : watermarksOf(core)
}

/** Throws what is broken. */
function explain(core: Core, before: Watermarks): void {
  const { log, term, vote } = core
  const where = () => `node ${core.id}, ${core.role}, term ${term}, commit ${log.committed}, last ${log.lastIndex}`
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
  if (core.role === 'leader') checkLeader(core, where)
}

function isSoundLeader(core: Core): boolean {
  if (core.leader !== core.id) return false
  const { lastIndex } = core.log
  for (const { match, next, inflights } of core.tracked.progress.values()) {
    if (match >= next || match > lastIndex || inflights.count > core.limits.inflightsMax) return false
  }
  return true
}

function checkLeader(core: Core, where: () => string): void {
  assert(core.leader === core.id, () => `a leader that follows ${core.leader} (${where()})`)
  for (const [id, progress] of core.tracked.progress) {
    assert(
      progress.match < progress.next,
      () => `peer ${id}: match ${progress.match}, next ${progress.next} (${where()})`,
    )
    assert(progress.match <= core.log.lastIndex, () => `peer ${id} matches ${progress.match} (${where()})`)
    assert(
      progress.inflights.count <= core.limits.inflightsMax,
      () => `peer ${id}: ${progress.inflights.count} in flight (${where()})`,
    )
  }
}
