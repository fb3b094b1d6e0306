/** What a guard uses of a database of `better-sqlite3`, `libsql` or `node:sqlite` (Node 22.16 and later). */
export interface SqliteDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- each driver has its own type of what can be bound
  prepare(sql: string): { all(...values: any[]): unknown[] }
  exec(sql: string): unknown
  /** Whether a transaction is open: `better-sqlite3` and `libsql`. */
  readonly inTransaction?: boolean
  /** The same for `node:sqlite`. */
  readonly isTransaction?: boolean
}
