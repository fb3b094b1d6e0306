import type { Scenario } from './format.js'
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

/** All scenarios, in the order in which they are listed. */
export const SCENARIOS: readonly Scenario[] = [a1, a1g, a2, a2u, a3, a4, a4g, a6, a7, a7late, a8, a8m, a10, a10bad]

/** Ids are compared without regard to case. */
export function scenarioOf(id: string): Scenario | undefined {
  return SCENARIOS.find((scenario) => scenario.id.toLowerCase() === id.toLowerCase())
}
