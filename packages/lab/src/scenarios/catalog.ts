import { ACCESS_CASES } from './cases/access.js'
import { CONSENSUS_CASES, LEADER_CASES } from './cases/consensus.js'
import { DISK_CASES } from './cases/disks.js'
import { GRANT_CASES } from './cases/grants.js'
import { GUARD_CASES } from './cases/guards.js'
import { HOLD_END_CASES } from './cases/hold-ends.js'
import { OTHER_LOCK_CASES, TICKET_CASES } from './cases/other-locks.js'
import { REDLOCK_CASES } from './cases/redlock.js'
import { SESSION_CASES } from './cases/sessions.js'
import { FLOOR_CASES, MOVED_LOCK_CASES } from './cases/successors.js'
import { WATCH_CASES } from './cases/watches.js'
import type { Scenario } from './format.js'

/** All scenarios, in the order in which they are listed. */
export const SCENARIOS: readonly Scenario[] = [
  ...GUARD_CASES,
  ...REDLOCK_CASES,
  ...OTHER_LOCK_CASES,
  ...SESSION_CASES,
  ...GRANT_CASES,
  ...HOLD_END_CASES,
  ...CONSENSUS_CASES,
  ...DISK_CASES,
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
