import { ACCESS_CASES } from './cases/access-cases.js'
import { CONSENSUS_CASES, LEADER_CASES } from './cases/consensus-cases.js'
import { DEADLINE_CASES } from './cases/deadline-cases.js'
import { DISK_CASES } from './cases/disk-cases.js'
import { GRANT_CASES } from './cases/grant-cases.js'
import { GUARD_CASES } from './cases/guard-cases.js'
import { HOLD_END_CASES } from './cases/hold-end-cases.js'
import { LOST_WRITE_CASES } from './cases/lost-write-cases.js'
import { OTHER_LOCK_CASES, TICKET_CASES } from './cases/other-lock-cases.js'
import { REDLOCK_CASES } from './cases/redlock-cases.js'
import { SESSION_CASES, SESSION_END_CASES } from './cases/session-cases.js'
import { FLOOR_CASES, MOVED_LOCK_CASES } from './cases/successor-cases.js'
import { WATCH_CASES } from './cases/watch-cases.js'
import type { Scenario } from './format.js'

/** All scenarios, in the order in which they are listed. */
export const SCENARIOS: readonly Scenario[] = [
  ...GUARD_CASES,
  ...REDLOCK_CASES,
  ...OTHER_LOCK_CASES,
  ...SESSION_CASES,
  ...DEADLINE_CASES,
  ...SESSION_END_CASES,
  ...GRANT_CASES,
  ...HOLD_END_CASES,
  ...CONSENSUS_CASES,
  ...DISK_CASES,
  ...LOST_WRITE_CASES,
  ...WATCH_CASES,
  ...TICKET_CASES,
  ...MOVED_LOCK_CASES,
  ...LEADER_CASES,
  ...ACCESS_CASES,
  ...FLOOR_CASES,
]

/** Finds a scenario by its id, without regard to case. */
export function scenarioOf(id: string): Scenario | undefined {
  return SCENARIOS.find((scenario) => scenario.id.toLowerCase() === id.toLowerCase())
}
