import type { Target } from '../common/resource.js'
import type { Quote } from './names.js'
import type { Statement } from './statement.js'

/** The SQL of one kind of database. Tokens are written and read as decimal text. */
export interface Dialect {
  readonly name: 'pg' | 'mysql' | 'sqlite'
  readonly quote: Quote
  /** The placeholder of the n-th value of a statement, counted from 1. */
  placeholder(n: number): string
  /** Quotes a string so that it is safe in a statement under any settings of the session. */
  literal(value: string): string
  asInteger(expression: string): string
  asText(expression: string): string
  /**
   * The first statement in a transaction of the caller: reads the floor as `floor`, and blocks `prune` until the commit.
   * Also stores `token` and `resources` in the transaction, where triggers read them.
   */
  floor(proof: WriteProof): Statement
  /**
   * Blocks `prune` until the commit without taking a snapshot; runs right after BEGIN. Undefined where BEGIN or the next
   * statement does this. After it, {@link Dialect.raiseLocked} does the work of `floor` and `raise` in one statement.
   */
  readonly lockShared: string | undefined
  /** `floor` and `raise` in one statement, after `lockShared`. Raises nothing below the floor. */
  raiseLocked(proof: WriteProof, targets: readonly Target[]): Statement
  /** Raises the marks that may be raised. Returns one row `resource` per raised mark. */
  raise(targets: readonly Target[]): Statement
  /** Whether the raising statements return no rows and take one target each, so that their effect must be read back. */
  readonly readsBack: boolean
  /** Reads marks as `resource`, `token`, `kind`, `lock`. After `raise` they are locked by this transaction. */
  read(marks: readonly string[]): Statement
  /** Reads one mark in a read-only transaction and locks it until the commit; for dialects without `readOnly`. */
  readShared?(mark: string): Statement
  /** Reads a bare resource as `kind`, `lock`. Only `prune` deletes it, and the floor blocks `prune` until the commit. */
  kind(resource: string): Statement
  /** Records that permits guard a resource, unless a kind is recorded already. */
  setKind(resource: string, lock: string): Statement
  /** Makes the rest of the transaction read-only; undefined where the adapter does this. */
  readonly readOnly: string | undefined
  /** Blocks all checks until the commit; undefined where BEGIN or `readFloor` does this. */
  readonly lockExclusive: string | undefined
  /** Reads the floor as `floor`, for `prune` and for error messages. */
  readFloor(): Statement
  setFloor(floor: string): Statement
  /** Deletes marks of permits below the floor. */
  pruneSlots(floor: string): Statement
  /** Deletes kinds that no mark of a permit needs. */
  pruneKinds(): Statement
  /** Deletes at most `limit` marks of locks below the floor; where possible it skips marks that are being raised. */
  pruneMarks(floor: string, limit: number): Statement
}

/** What triggers check: the writer's token, and as JSON the resources that it may write. */
export interface WriteProof {
  readonly token: string
  readonly resources: string
}

/** Returns the number of deleted rows, from one row per deletion or, for drivers without RETURNING, from one row with the count. */
export function countOf(rows: readonly Readonly<Record<string, unknown>>[]): number {
  const affected = rows[0]?.affected
  return typeof affected === 'number' ? affected : rows.length
}
