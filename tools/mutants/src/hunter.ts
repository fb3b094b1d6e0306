// Runs inside a copy of the packages: scenarios, then seeds of the explorer, and tells on each line what has come of it.
import { planOf, runPlan, runScenario, SCENARIOS } from '@leasehold/lab'
import type { HuntLine, HuntOrder } from './hunt.js'

/** What the world's own code does to a bug that throws out of the lab. */
function broken(error: unknown): string {
  return `an exception: ${error instanceof Error ? error.message : String(error)}`
}

function tell(line: HuntLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

async function playScenarios(ids: readonly string[]): Promise<boolean> {
  for (const scenario of SCENARIOS.filter(({ id }) => ids.includes(id))) {
    tell({ kind: 'begin', what: `scenario ${scenario.id}` })
    let why: string | undefined
    try {
      const result = await runScenario(scenario, { seed: 1 })
      if (!result.ok) why = result.violations[0]?.text ?? result.differences[0] ?? 'it ended otherwise'
    } catch (error) {
      why = broken(error)
    }
    if (why === undefined) continue
    tell({ kind: 'scenario', id: scenario.id, why })
    return true
  }
  return false
}

/** Whether one of the seeds shows it. */
async function runSeeds({ profile, members }: HuntOrder, from: number, to: number): Promise<boolean> {
  for (let seed = from; seed <= to; seed++) {
    tell({ kind: 'begin', what: `seed ${seed}` })
    let why: string | undefined
    try {
      const { violations } = await runPlan(planOf(seed, profile, members))
      if (violations[0]) why = `${violations[0].invariant}: ${violations[0].text}`
    } catch (error) {
      why = broken(error)
    }
    if (why === undefined) continue
    tell({ kind: 'seed', seed, why })
    return true
  }
  return false
}

const order = JSON.parse(process.argv[2] ?? '') as HuntOrder
const { seeds, seedsFirst, seedsAfterScenario, scenariosFirst, scenarios } = order
const atOnce = await playScenarios(scenariosFirst)
if (!(await runSeeds(order, 1, Math.min(seedsFirst, seeds)))) {
  const shown = atOnce || (await playScenarios(scenarios))
  await runSeeds(order, seedsFirst + 1, shown ? Math.min(seeds, seedsAfterScenario) : seeds)
}
