import { InvalidError, type LeaseholdError } from '@leasehold/core'
import { mismatch, type Opening, staleToken, type Target } from '../common/resource.js'
import type { Dialect } from './dialect.js'
import { raw, type Statement, sql } from './statement.js'
import { bigintOf, type Row, type Steps } from './steps.js'

/**
 * Opens resources in a transaction of the caller, before anything is read or written: checks the floor, then the kind, then
 * raises the marks. The marks stay locked until the commit, and a rollback undoes them.
 * @throws StaleTokenError, InvalidError (`mismatch`)
 */
export function* openSteps(dialect: Dialect, opening: Opening): Steps<void> {
  const { targets } = opening
  checkFloor(targets, yield dialect.floor(writeProof(opening)))
  for (const target of targets) if (target.kind === 'slot') yield* ensureKind(dialect, target)
  if (dialect.readsBack) yield* raiseOneByOne(dialect, targets, (target) => dialect.raise([target]))
  else {
    const raised = yield dialect.raise(targets)
    if (raised.length !== targets.length) yield* reject(dialect, targets, raised)
    if (dialect.name === 'pg') checkInside(raised)
  }
  yield* setReadOnly(dialect, opening)
}

/**
 * Opens resources in a transaction that the guard has begun, followed by `lockShared`. This needs one statement less, because
 * `prune` is blocked already and everything read is newer than that.
 */
export function* openLockedSteps(dialect: Dialect, opening: Opening): Steps<void> {
  const { targets } = opening
  for (const target of targets) if (target.kind === 'slot') yield* ensureKind(dialect, target)
  const proof = writeProof(opening)
  if (dialect.readsBack) yield* raiseOneByOne(dialect, targets, (target) => dialect.raiseLocked(proof, [target]))
  else yield* checkRaised(dialect, opening, yield dialect.raiseLocked(proof, targets))
  yield* setReadOnly(dialect, opening)
}

/** Returns the one statement that opens everything; undefined if the opening needs more than one. */
export function raiseAtOnce(dialect: Dialect, opening: Opening): Statement | undefined {
  const needsMore = dialect.readsBack || opening.targets.some((target) => target.kind === 'slot')
  return needsMore ? undefined : dialect.raiseLocked(writeProof(opening), opening.targets)
}

/** Checks the rows that `raiseLocked` has returned. */
export function* checkRaised(dialect: Dialect, { targets }: Opening, raised: readonly Row[]): Steps<void> {
  if (raised.length === targets.length) return
  checkFloor(targets, yield dialect.readFloor())
  yield* reject(dialect, targets, raised)
}

/** Locks marks that an earlier transaction has raised, and rejects if a later hold has raised one since. */
export function* recheckSteps(dialect: Dialect, { targets }: Opening): Steps<void> {
  for (const target of targets) {
    const [row] = yield dialect.readShared?.(target.mark) ?? dialect.read([target.mark])
    if (row === undefined || bigintOf(row.token) > target.token) {
      throw rejection(target, row) ?? staleToken(target.mark, target.token, undefined)
    }
  }
}

/** Makes the rest of the transaction read-only for shared holds. */
export function* setReadOnly(dialect: Dialect, opening: Opening): Steps<void> {
  if (opening.readOnly && dialect.readOnly !== undefined) yield sql`${raw(dialect.readOnly)}`
}

/** The number of rows that MySQL reports for an accepted opening of a resource that has a mark. */
const AFFECTED_BY_UPDATE = 2

const NO_PROOF = { token: '', resources: '{}' }

/** Raises one mark per statement where upserts return no rows, and reads it back unless the row count suffices. */
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
    throw rejection(target, row) ?? staleToken(target.mark, target.token, undefined)
  }
}

/** What triggers check: the writer's token and the resources that it may write; empty for readers. */
function writeProof({ targets }: Opening): { token: string; resources: string } {
  const writers = targets.filter((target) => target.writes)
  const resources = Object.fromEntries(writers.map(({ mark, token }) => [mark, token.toString()]))
  return { token: writers[0]?.token.toString() ?? 'shared', resources: JSON.stringify(resources) }
}

function checkFloor(targets: readonly Target[], rows: readonly Row[]): void {
  const row = rows[0]
  if (row === undefined) {
    throw new InvalidError("the guard's floor is missing: the migration did not complete", {
      hint: 'run the migration that `leasehold guard sql` prints',
    })
  }
  const floor = bigintOf(row.floor)
  for (const { mark, token } of targets) if (token < floor) throw staleToken(mark, token, floor)
}

/** Records and checks that permits guard the resource. */
function* ensureKind(dialect: Dialect, target: Target): Steps<void> {
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

/** Determines, for the error message only, why a mark was not raised. */
function* reject(dialect: Dialect, targets: readonly Target[], raised: readonly Row[]): Steps<never> {
  const done = new Set(raised.map((row) => row.resource))
  const rejected = targets.filter((target) => !done.has(target.mark))
  const rows = yield dialect.read(rejected.map((target) => target.mark))
  for (const target of rejected) {
    const problem = rejection(
      target,
      rows.find((row) => row.resource === target.mark),
    )
    if (problem !== undefined) throw problem
  }
  const [first] = rejected as [Target]
  throw staleToken(first.mark, first.token, undefined)
}

function rejection(target: Target, row: Row | undefined): LeaseholdError | undefined {
  if (row === undefined) return undefined
  const problem = mismatch(target, { kind: String(row.kind), lock: String(row.lock) }, target.kind)
  return problem ?? staleToken(target.mark, target.token, bigintOf(row.token))
}

/** Checks that a transaction is open: without one, the setting that is local to it is gone by now. */
function checkInside(raised: readonly Row[]): void {
  if (!raised.every((row) => typeof row.inside === 'string' && row.inside !== '')) throw outside()
}

/** The body of a unit has ended its transaction, so later statements were not guarded. */
export function endedInside(cause?: unknown): InvalidError {
  return new InvalidError(
    'a statement has ended the guarded transaction: earlier statements are committed or rolled back',
    {
      cause,
      hint: 'no BEGIN, COMMIT, ROLLBACK or DDL that commits inside a guarded transaction; savepoints are fine',
    },
  )
}

/** The rejection of an opening without a transaction, which would not hold the mark for the following statements. */
export function outside(): InvalidError {
  return new InvalidError('a resource can only be opened inside a transaction, and none is open on this connection', {
    hint: 'call enter(tx, hold) after BEGIN, with the connection of the transaction',
  })
}
