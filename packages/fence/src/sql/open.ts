import { InvalidError } from '@leasehold/core'
import { mismatch, type Opening, staleToken, type Target } from '../resource.js'
import type { Dialect } from './dialect.js'
import { bigintOf, type Row, type Steps } from './steps.js'

/**
 * Opens resources in a running transaction of somebody else's: checks the floor, then the kind, then raises the marks, before
 * anything is read or written. The marks stay locked until the commit, and roll back with it.
 * @throws StaleTokenError, InvalidError (`mismatch`)
 */
export function* openSteps(dialect: Dialect, opening: Opening): Steps<void> {
  const { targets } = opening
  checkFloor(targets, yield dialect.floor(writeProof(opening)))
  for (const target of targets) if (target.kind === 'slot') yield* holdKind(dialect, target)
  const raised = yield dialect.raise(targets)
  if (raised.length !== targets.length) yield* refuse(dialect, targets, raised)
  if (dialect.name === 'pg') checkInside(raised)
  if (opening.readOnly && dialect.readOnly !== undefined) yield dialect.readOnly
}

/**
 * The same in a transaction that the guard has begun itself, with `lockShared` right behind: `prune` is away already, and
 * everything that is read is newer than that. One statement less.
 */
export function* openLockedSteps(dialect: Dialect, opening: Opening): Steps<void> {
  const { targets } = opening
  for (const target of targets) if (target.kind === 'slot') yield* holdKind(dialect, target)
  const raised = yield dialect.raiseLocked(writeProof(opening), targets)
  if (raised.length !== targets.length) {
    checkFloor(targets, yield dialect.readFloor())
    yield* refuse(dialect, targets, raised)
  }
  if (opening.readOnly && dialect.readOnly !== undefined) yield dialect.readOnly
}

/** What triggers check: the token that writes, and the resources that it may write. Nothing for readers. */
function writeProof({ targets }: Opening): { token: string; resources: string } {
  const writers = targets.filter((target) => target.writes)
  const resources = Object.fromEntries(writers.map(({ mark, token }) => [mark, token.toString()]))
  return { token: writers[0]?.token.toString() ?? 'shared', resources: JSON.stringify(resources) }
}

function checkFloor(targets: readonly Target[], rows: readonly Row[]): void {
  const row = rows[0]
  if (row === undefined) {
    throw new InvalidError("the guard's floor is missing: the migration has not run to its end", {
      hint: 'run the migration that `leasehold guard sql` prints',
    })
  }
  const floor = bigintOf(row.floor)
  for (const { mark, token } of targets) if (token < floor) throw staleToken(mark, token, floor)
}

/** A permit's resource is marked as one. */
function* holdKind(dialect: Dialect, target: Target): Steps<void> {
  let rows = yield dialect.kind(target.resource)
  if (rows.length === 0) {
    yield dialect.setKind(target.resource, target.lock)
    rows = yield dialect.kind(target.resource)
  }
  const [row] = rows
  if (row === undefined) throw new InvalidError(`the kind of ${JSON.stringify(target.resource)} cannot be read back`)
  const problem = mismatch(target, { kind: String(row.kind), lock: String(row.lock) }, 'permits')
  if (problem !== undefined) throw problem
}

/** Finds out, for the message only, why a mark was not raised. */
function* refuse(dialect: Dialect, targets: readonly Target[], raised: readonly Row[]): Steps<never> {
  const done = new Set(raised.map((row) => row.resource))
  const refused = targets.filter((target) => !done.has(target.mark))
  const rows = yield dialect.read(refused.map((target) => target.mark))
  for (const target of refused) {
    const row = rows.find((candidate) => candidate.resource === target.mark)
    if (row === undefined) continue
    const problem = mismatch(target, { kind: String(row.kind), lock: String(row.lock) }, target.kind)
    if (problem !== undefined) throw problem
    throw staleToken(target.mark, target.token, bigintOf(row.token))
  }
  const [first] = refused as [Target]
  throw staleToken(first.mark, first.token, undefined)
}

/** A setting that is local to the transaction is gone by now if there is no transaction. */
function checkInside(raised: readonly Row[]): void {
  if (raised.every((row) => typeof row.inside === 'string' && row.inside !== '')) return
  throw new InvalidError('a resource can only be opened inside a transaction, and none is open on this connection', {
    hint: 'call enter(tx, hold) after BEGIN, with the connection of the transaction',
  })
}
