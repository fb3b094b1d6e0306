import { InvalidError, type LeaseholdError } from '@leasehold/core'
import { mismatch, type Opening, staleToken, type Target } from '../common/resource.js'
import type { Dialect } from './dialect.js'
import { raw, type Statement, sql } from './statement.js'
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
  if (dialect.readsBack) yield* raiseOneByOne(dialect, targets, (target) => dialect.raise([target]))
  else {
    const raised = yield dialect.raise(targets)
    if (raised.length !== targets.length) yield* refuse(dialect, targets, raised)
    if (dialect.name === 'pg') checkInside(raised)
  }
  yield* setReadOnly(dialect, opening)
}

/**
 * The same in a transaction that the guard has begun itself, with `lockShared` right behind: `prune` is away already, and
 * everything that is read is newer than that. One statement less.
 */
export function* openLockedSteps(dialect: Dialect, opening: Opening): Steps<void> {
  const { targets } = opening
  for (const target of targets) if (target.kind === 'slot') yield* holdKind(dialect, target)
  const proof = writeProof(opening)
  if (dialect.readsBack) yield* raiseOneByOne(dialect, targets, (target) => dialect.raiseLocked(proof, [target]))
  else yield* checkRaised(dialect, opening, yield dialect.raiseLocked(proof, targets))
  yield* setReadOnly(dialect, opening)
}

/** What one statement, `raiseLocked`, does for an opening; undefined if the opening needs more than that. */
export function raiseAtOnce(dialect: Dialect, opening: Opening): Statement | undefined {
  const needsMore = dialect.readsBack || opening.targets.some((target) => target.kind === 'slot')
  return needsMore ? undefined : dialect.raiseLocked(writeProof(opening), opening.targets)
}

/** The decision about what `raiseLocked` has answered. */
export function* checkRaised(dialect: Dialect, { targets }: Opening, raised: readonly Row[]): Steps<void> {
  if (raised.length === targets.length) return
  checkFloor(targets, yield dialect.readFloor())
  yield* refuse(dialect, targets, raised)
}

/** Locks marks that were raised in an earlier transaction, and refuses if a later holder has raised one since. */
export function* recheckSteps(dialect: Dialect, { targets }: Opening): Steps<void> {
  for (const target of targets) {
    const [row] = yield dialect.readShared?.(target.mark) ?? dialect.read([target.mark])
    if (row === undefined || bigintOf(row.token) > target.token) {
      throw refusal(target, row) ?? staleToken(target.mark, target.token, undefined)
    }
  }
}

export function* setReadOnly(dialect: Dialect, opening: Opening): Steps<void> {
  if (opening.readOnly && dialect.readOnly !== undefined) yield sql`${raw(dialect.readOnly)}`
}

/** Rows that were changed by an accepted opening of a resource that has a mark; see the dialect of MySQL. */
const AFFECTED_BY_UPDATE = 2

const NO_PROOF = { token: '', resources: '{}' }

/** Where upserts answer no rows: each mark by a statement, and a look at it unless the number of rows says enough. */
function* raiseOneByOne(
  dialect: Dialect,
  targets: readonly Target[],
  raise: (target: Target) => Statement,
): Steps<void> {
  for (const target of targets) {
    const [answer] = yield raise(target)
    if (answer?.inside === false) throw outside()
    if (answer?.affected === AFFECTED_BY_UPDATE) continue
    const [row] = yield dialect.read([target.mark])
    const accepted =
      row !== undefined && row.kind === target.kind && row.lock === target.lock && bigintOf(row.token) === target.token
    if (accepted) continue
    checkFloor([target], yield dialect.floor(NO_PROOF))
    throw refusal(target, row) ?? staleToken(target.mark, target.token, undefined)
  }
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
    const problem = refusal(
      target,
      rows.find((row) => row.resource === target.mark),
    )
    if (problem !== undefined) throw problem
  }
  const [first] = refused as [Target]
  throw staleToken(first.mark, first.token, undefined)
}

function refusal(target: Target, row: Row | undefined): LeaseholdError | undefined {
  if (row === undefined) return undefined
  const problem = mismatch(target, { kind: String(row.kind), lock: String(row.lock) }, target.kind)
  return problem ?? staleToken(target.mark, target.token, bigintOf(row.token))
}

/** A setting that is local to the transaction is gone by now if there is no transaction. */
function checkInside(raised: readonly Row[]): void {
  if (!raised.every((row) => typeof row.inside === 'string' && row.inside !== '')) throw outside()
}

/** The body of a unit has ended the unit's transaction: what came later was not guarded. */
export function endedInside(cause?: unknown): InvalidError {
  return new InvalidError('a statement has ended the guarded transaction: what came before it is committed or undone', {
    cause,
    hint: 'no BEGIN, COMMIT, ROLLBACK or DDL that commits inside a guarded transaction; savepoints are fine',
  })
}

/** The refusal to open without a transaction: the mark would be raised, and nothing would hold it for what comes next. */
export function outside(): InvalidError {
  return new InvalidError('a resource can only be opened inside a transaction, and none is open on this connection', {
    hint: 'call enter(tx, hold) after BEGIN, with the connection of the transaction',
  })
}
