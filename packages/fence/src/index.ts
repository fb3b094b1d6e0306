export { MissingRowError } from './errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './guard.js'
export { type GuardableHold, handHeld } from './hold.js'
export { GUARD_KINDS, type GuardKind, type GuardSqlOptions, guardSql } from './migrations.js'
