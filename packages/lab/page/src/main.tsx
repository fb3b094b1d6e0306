import { planOf, runPlan } from '@leasehold/lab/fuzz/index'
import { runScenario, scenarioOf } from '@leasehold/lab/scenarios/index'
import { render } from 'preact'
import { App } from './view/app.js'
import type { Driver } from './view/driver.js'

/** For the console of the browser, and for tests. */
export interface LabOfPage {
  driver: Driver | undefined
  /** Plays a scenario of the catalog to its end, as `leasehold lab run` does. */
  run(id: string, seed: number): Promise<{ readonly ok: boolean; readonly traceHash: string }>
  /** Runs a seed of the explorer, as `leasehold lab explore` does. */
  explore(seed: number): Promise<{ readonly violations: number; readonly traceHash: string }>
}

const lab: LabOfPage = {
  driver: undefined,
  run: async (id, seed) => {
    const scenario = scenarioOf(id)
    if (scenario === undefined) throw new Error(`the catalog has no ${id}`)
    const { ok, traceHash } = await runScenario(scenario, { seed })
    return { ok, traceHash }
  },
  explore: async (seed) => {
    const { violations, traceHash } = await runPlan(planOf(seed, 'swarm'))
    return { violations: violations.length, traceHash }
  },
}
Object.assign(globalThis, { leaseholdLab: lab })

const root = document.getElementById('app')
if (root === null) throw new Error('the page has no place for the lab')
render(
  <App
    onDriver={(driver) => {
      lab.driver = driver
    }}
  />,
  root,
)
