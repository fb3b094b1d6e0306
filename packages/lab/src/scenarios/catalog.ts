import type { Scenario } from './format.js'
import { SESSION_ROWS } from './rows/s-sessions.js'
import { GRANT_ROWS } from './rows/q-grants.js'
import { END_ROWS } from './rows/q-ends.js'
import { CONSENSUS_ROWS } from './rows/p-consensus.js'
import { DISK_ROWS } from './rows/d-disk.js'
import { WATCH_ROWS } from './rows/w-watch.js'
import { ACCESS_ROWS } from './rows/w-access.js'
import { FLOOR_ROWS } from './rows/f-floors.js'
import { LEADERS_ROWS } from './rows/p-leaders.js'
import { P21_ROWS } from './rows/p21.js'
import { Q10_ROWS } from './rows/q10.js'
import { a1 } from './rows/a1.js'
import { a10, a10bad } from './rows/a10.js'
import { a1g } from './rows/a1g.js'
import { a2 } from './rows/a2.js'
import { a2u } from './rows/a2u.js'
import { a3 } from './rows/a3.js'
import { a4, a4g } from './rows/a4.js'
import { a6 } from './rows/a6.js'
import { a7, a7late } from './rows/a7.js'
import { a8, a8m } from './rows/a8.js'
import { a9 } from './rows/a9.js'
import { r1 } from './rows/r1.js'
import { r11, r12 } from './rows/r11.js'
import { r13, r13c } from './rows/r13.js'
import { r14, r14c } from './rows/r14.js'
import { r15, r15c } from './rows/r15.js'
import { r16, r16c } from './rows/r16.js'
import { r2, r2c, r2d } from './rows/r2.js'
import { r3a, r3b, r3c, r3cw } from './rows/r3.js'
import { r4, r4check } from './rows/r4.js'
import { r5 } from './rows/r5.js'
import { r6 } from './rows/r6.js'
import { r7 } from './rows/r7.js'
import { r8 } from './rows/r8.js'
import { r9, r9c } from './rows/r9.js'

/** All scenarios, in the order in which they are listed. */
export const SCENARIOS: readonly Scenario[] = [
  a1,
  a1g,
  a2,
  a2u,
  a3,
  a4,
  a4g,
  a6,
  a7,
  a7late,
  a8,
  a8m,
  a9,
  a10,
  a10bad,
  r1,
  r2,
  r2c,
  r2d,
  r3a,
  r3b,
  r3c,
  r3cw,
  r4,
  r4check,
  r5,
  r6,
  r7,
  r8,
  r9,
  r9c,
  r11,
  r12,
  r13,
  r13c,
  r14,
  r14c,
  r15,
  r15c,
  r16,
  r16c,
  ...SESSION_ROWS,
  ...GRANT_ROWS,
  ...END_ROWS,
  ...CONSENSUS_ROWS,
  ...DISK_ROWS,
  ...WATCH_ROWS,
  ...Q10_ROWS,
  ...P21_ROWS,
  ...LEADERS_ROWS,
  ...ACCESS_ROWS,
  ...FLOOR_ROWS,
]

/** Ids are compared without regard to case. */
export function scenarioOf(id: string): Scenario | undefined {
  return SCENARIOS.find((scenario) => scenario.id.toLowerCase() === id.toLowerCase())
}
