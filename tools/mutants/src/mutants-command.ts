import { InvalidError } from '@leasehold/core'
import { SCENARIOS } from '@leasehold/lab'
import { MUTANTS, OPEN_MUTANTS, RULE_MUTANTS } from './catalog.js'
import { patched } from './copy.js'
import { hunt, type Hunted } from './hunt.js'
import type { Mutant } from './mutant.js'
import { drift, rowOf, withRows } from './report.js'

/** What 1 000 seeds do not find is a hole. */
const SEEDS_DEFAULT = 1000
const SEEDS_FIRST = 20
const SEEDS_AFTER_SCENARIO = 100
const WORKERS_MAX = 8
const ALL: readonly Mutant[] = [...MUTANTS, ...OPEN_MUTANTS, ...RULE_MUTANTS]

const USAGE = `usage: npm run mutants -- [--check] [--seeds N] [--workers N] [MUTANT…]
  MUTANT     an id such as raft/two-votes, or a package; default: all in the table; open: those not found so far;
             client-rules: rules that only the client's own tests guard
  --seeds    how many seeds a mutant is hunted for (default ${SEEDS_DEFAULT})
  --workers  how many are hunted at once (default 1)
  --check    hunts nothing: every patch fits today's code, and every mutant has its row in docs/internals/mutants.md`

export interface MutantsIo {
  readonly out: (line: string) => void
  readonly read: () => string
  readonly write: (document: string) => void
}

interface Order {
  readonly check: boolean
  readonly seeds: number
  readonly workers: number
  readonly mutants: readonly Mutant[]
}

/** `npm run mutants`: 0 when all are found, 1 when one is not, 2 for a wrong call. */
export async function mutantsCommand(args: readonly string[], io: MutantsIo): Promise<0 | 1 | 2> {
  let order: Order
  try {
    order = orderOf(args)
  } catch (error) {
    if (!(error instanceof InvalidError)) throw error
    io.out(`${error.message}\n${USAGE}`)
    return 2
  }
  if (order.check) return check(io)
  const found: Hunted[] = []
  const left = [...order.mutants]
  const work = async (): Promise<void> => {
    for (let mutant = left.shift(); mutant; mutant = left.shift()) {
      const hunted = await huntOne(mutant, order.seeds)
      found.push(hunted)
      io.out(rowOf(mutant, hunted))
      // Written at once: a long report that is stopped keeps what it has.
      if (MUTANTS.includes(mutant)) io.write(withRows(io.read(), MUTANTS, [hunted]))
    }
  }
  await Promise.all(Array.from({ length: order.workers }, work))
  const missed = found.filter(({ scenario, seed, simulation, test }) => !scenario && !seed && !simulation && !test)
  io.out(`${found.length - missed.length} of ${found.length} mutants found`)
  for (const { id, seeds } of missed) io.out(`not found in ${seeds} seeds: ${id}`)
  return missed.length > 0 ? 1 : 0
}

async function huntOne(mutant: Mutant, seeds: number): Promise<Hunted> {
  const { profile = 'swarm', members, scenarios: scenariosFirst = [] } = mutant
  return await hunt(mutant, {
    scenariosFirst,
    // Baselines are other people's locks: a bug of ours does not show there.
    scenarios: SCENARIOS.filter(({ system }) => ['leasehold', 'cluster'].includes(system.kind)).map(({ id }) => id),
    profile,
    ...(members === undefined ? {} : { members }),
    seeds,
    seedsFirst: SEEDS_FIRST,
    seedsAfterScenario: SEEDS_AFTER_SCENARIO,
  })
}

function check(io: MutantsIo): 0 | 1 {
  for (const mutant of ALL) patched(mutant)
  const problems = drift(io.read(), MUTANTS)
  for (const problem of problems) io.out(`docs/internals/mutants.md: ${problem}`)
  if (problems.length === 0) io.out(`${MUTANTS.length} mutants: every patch fits, every one has its row`)
  return problems.length > 0 ? 1 : 0
}

function orderOf(args: readonly string[]): Order {
  let [check, seeds, workers] = [false, SEEDS_DEFAULT, 1]
  const names: string[] = []
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string
    if (arg === '--check') check = true
    else if (arg === '--seeds') seeds = numberOf(arg, args[++i], 1_000_000)
    else if (arg === '--workers') workers = numberOf(arg, args[++i], WORKERS_MAX)
    else if (arg.startsWith('-')) throw new InvalidError(`there is no ${arg}`)
    else names.push(arg)
  }
  return { check, seeds, workers, mutants: mutantsNamed(names) }
}

function mutantsNamed(names: readonly string[]): readonly Mutant[] {
  if (names.length === 0) return MUTANTS
  return names.flatMap((name) => {
    if (name === 'open') return OPEN_MUTANTS
    const some = ALL.filter(({ id }) => id === name || id.startsWith(`${name}/`))
    if (some.length === 0) throw new InvalidError(`there is no mutant ${name}`)
    return some
  })
}

function numberOf(option: string, text: string | undefined, max: number): number {
  const value = Number(text)
  if (text === undefined || !/^[1-9]\d*$/.test(text) || value > max) throw new InvalidError(`${option} is 1 to ${max}`)
  return value
}
