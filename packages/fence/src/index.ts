export { MissingRowError } from './common/errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './common/guard.js'
export { type GuardableHold, handHeld } from './common/hold.js'
export { GUARD_KINDS, type GuardKind, type GuardSqlOptions, guardSql } from './migrations.js'
