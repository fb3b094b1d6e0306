export type { Fenced, Guard, GuardableHold, GuardOptions, OpenOptions } from './hold.js'
export { type GuardKind, type GuardSqlOptions, guardSql } from './migrations.js'
