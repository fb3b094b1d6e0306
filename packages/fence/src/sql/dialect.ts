import type { Target } from '../common/resource.js'
import type { Quote } from './names.js'
import type { Statement } from './statement.js'

/** How the SQL core talks to one kind of database. Every token is written and read as decimal text. */
export interface Dialect {
  readonly name: 'pg' | 'mysql' | 'sqlite'
  readonly quote: Quote
  /** The n-th value of a statement, counted from 1. */
  placeholder(n: number): string
  /** A string as text that is safe in a statement, whatever the session's settings are. */
  literal(value: string): string
  asInteger(expression: string): string
  asText(expression: string): string
  /**
   * First statement in somebody else's transaction: reads the floor as `floor`, and keeps `prune` away until the commit.
   * Also leaves `token` and `resources` in the transaction where triggers can see them.
   */
  floor(proof: WriteProof): Statement
  /**
   * Keeps `prune` away until the commit, without a snapshot: to be run right behind BEGIN. Undefined where BEGIN, or the
   * next statement, does it. After it one statement can do the work of `floor` and `raise`: {@link Dialect.raiseLocked}.
   */
  readonly lockShared: string | undefined
  /** `floor` and `raise` in one, after `lockShared`: raises nothing below the floor. */
  raiseLocked(proof: WriteProof, targets: readonly Target[]): Statement
  /** Raises the marks where the rule allows it. Answers one row `resource` for each that was raised. */
  raise(targets: readonly Target[]): Statement
  /** Whether the raising statements answer no rows, and take one target each: what they did has to be read back. */
  readonly readsBack: boolean
  /** Reads marks as `resource`, `token`, `kind`, `lock`. After `raise` they are locked by this transaction. */
  read(marks: readonly string[]): Statement
  /** The same for one mark in a transaction that can only read: nobody raises it until the commit. Where `readOnly` is missing. */
  readShared?(mark: string): Statement
  /** Reads a bare resource as `kind`, `lock`. Only `prune` deletes it, which the floor keeps away until the commit. */
  kind(resource: string): Statement
  /** Says that a resource is guarded by permits, unless something is said already. */
  setKind(resource: string, lock: string): Statement
  /** Refuses all writes of the rest of this transaction; undefined where the adapter does it. */
  readonly readOnly: string | undefined
  /** Keeps all checks away until the commit. Undefined where BEGIN, or `readFloor`, does it. */
  readonly lockExclusive: string | undefined
  /** Reads the floor as `floor`; for `prune`, and for the message of a refusal. */
  readFloor(): Statement
  setFloor(floor: string): Statement
  /** Deletes marks of permits below the floor, then kinds that no permit's mark needs any more. */
  pruneSlots(floor: string): Statement
  pruneKinds(): Statement
  /** Deletes at most `limit` marks of locks below the floor, if it can without waiting for those that are being raised. */
  pruneMarks(floor: string, limit: number): Statement
}

/** What triggers check: the token that writes, and the resources that it may write, as JSON. */
export interface WriteProof {
  readonly token: string
  readonly resources: string
}

/** Deleted rows: a row `resource` for each, or one row with their number, as drivers without RETURNING tell it. */
export function countOf(rows: readonly Readonly<Record<string, unknown>>[]): number {
  const affected = rows[0]?.affected
  return typeof affected === 'number' ? affected : rows.length
}
