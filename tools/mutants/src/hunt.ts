import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Profile } from '@leasehold/lab'
import { copyWith } from './copy.js'
import { type FailedTest, failedTest } from './direct.js'
import { type Mutant, patchesSources } from './mutant.js'

/** One scenario or seed that takes longer does not come to an end: that is found, too. */
const STALL_MS = 240_000
/** Mutants of the consensus core, which has a simulation of its own. */
const CORE = 'raft/'
const SIMULATION_SEEDS = 1000

/** What a hunter is to do. */
export interface HuntOrder {
  /** Are played first, until one of them shows it. */
  readonly scenariosFirst: readonly string[]
  /** Are played when the first seeds show nothing, until one of them shows it. */
  readonly scenarios: readonly string[]
  readonly profile: Profile
  readonly members?: number
  /** Seeds 1 to this one. */
  readonly seeds: number
  readonly seedsFirst: number
  /** The last seed when a scenario has shown it already. */
  readonly seedsAfterScenario: number
}

/** What a hunter says. */
export type HuntLine =
  | { readonly kind: 'begin'; readonly what: string }
  | { readonly kind: 'scenario'; readonly id: string; readonly why: string }
  | { readonly kind: 'seed'; readonly seed: number; readonly why: string }

export interface Hunted {
  readonly id: string
  readonly profile: Profile
  /** The first scenario in which it shows. */
  readonly scenario?: { readonly id: string; readonly why: string }
  /** The first seed in which it shows. */
  readonly seed?: { readonly seed: number; readonly why: string }
  /** The first of its own tests that fails. */
  readonly test?: FailedTest
  /** The first seed of the consensus core's own simulation in which it shows. */
  readonly simulation?: { readonly seed: number; readonly why: string }
  /** How many seeds were looked at, if none of them showed it. */
  readonly seeds: number
}

/** Hunts one mutant in a process of its own, with a copy of the packages that has it in. Undefined: the unchanged code. */
export async function hunt(mutant: Mutant | undefined, order: HuntOrder): Promise<Hunted> {
  const test = mutant && (await failedTest(mutant))
  if (mutant && patchesSources(mutant))
    return { id: mutant.id, profile: order.profile, seeds: 0, ...(test && { test }) }
  const copy = copyWith(mutant)
  try {
    const simulation = mutant?.id.startsWith(CORE) === true ? await simulated(copy.simulation) : undefined
    // What its own tests, or thousands of short runs of the core alone, show in seconds need not be waited for in whole clusters.
    const shown =
      simulation || test ? { ...order, scenarios: [], seeds: Math.min(order.seeds, order.seedsFirst) } : order
    const rest = await hunted(mutant?.id ?? 'none', copy.hunter, shown)
    return { ...rest, ...(test && { test }), ...(simulation && { simulation }) }
  } finally {
    copy.remove()
  }
}

/** The first seed of the simulation that shows the bug. Needs the repository: the simulation is a test of the core. */
async function simulated(program: string): Promise<{ seed: number; why: string } | undefined> {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), program, String(SIMULATION_SEEDS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: STALL_MS,
  })
  let text = ''
  child.stdout.on('data', (part: Buffer) => {
    text += String(part)
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  if (code !== 0) throw new Error(`the simulation of the core ended with ${code}`)
  return text === '' ? undefined : (JSON.parse(text) as { seed: number; why: string })
}

async function hunted(id: string, hunter: string, order: HuntOrder): Promise<Hunted> {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), hunter, JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let now = ''
  let seeds = 0
  let found: Pick<Hunted, 'scenario' | 'seed'> = {}
  let stalled = false
  let problem = ''
  const stall = (): NodeJS.Timeout =>
    setTimeout(() => {
      stalled = true
      child.kill('SIGKILL')
    }, STALL_MS)
  let timer = stall()
  child.stderr.on('data', (text: Buffer) => {
    problem = `${problem}${text}`.slice(-2000)
  })
  createInterface({ input: child.stdout }).on('line', (text) => {
    clearTimeout(timer)
    timer = stall()
    const line = JSON.parse(text) as HuntLine
    if (line.kind === 'begin') {
      now = line.what
      if (now.startsWith('seed')) seeds++
    } else if (line.kind === 'scenario') found = { ...found, scenario: line }
    else found = { ...found, seed: line }
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  clearTimeout(timer)
  if (stalled || code !== 0) found = { ...found, ...died(now, stalled, problem) }
  return { id, profile: order.profile, seeds, ...found }
}

/** A run that never ends, or takes its process down, shows the bug as well; without a run it is an error of the hunt. */
function died(now: string, stalled: boolean, problem: string): Pick<Hunted, 'scenario' | 'seed'> {
  const why = stalled ? 'it does not come to an end' : `its process ends: ${problem.trim().split('\n').at(-1)}`
  const [what, name] = now.split(' ')
  if (what === 'seed') return { seed: { seed: Number(name), why } }
  if (what === 'scenario' && name !== undefined) return { scenario: { id: name, why } }
  throw new Error(`the hunter did not begin: ${problem}`)
}
