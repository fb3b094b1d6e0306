import { readFileSync, writeFileSync } from 'node:fs'
import { InvalidError, StorageError } from '@leasehold/core'
import type { Scenario, ScenarioResult } from '@leasehold/lab'
import { Command } from 'commander'
import pc from 'picocolors'
import { print, printJson, table } from '../output.js'
import type { Outcome } from '../outcome.js'

const EXIT_UNEXPECTED = 1
const SEED_MAX = 2 ** 32 - 1

/** `lab list`: lists the scenarios. The lab is loaded on use only. */
export function listSubcommand(): Command {
  return new Command('list')
    .description('list the scenarios')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ leasehold lab list')
    .action(async (options: { readonly json?: boolean }) => {
      const { SCENARIOS } = await import('@leasehold/lab')
      if (options.json === true) {
        return printJson(SCENARIOS.map(({ id, title, reference, expect }) => ({ id, title, reference, expect })))
      }
      const rows = SCENARIOS.map(({ id, title, expect }) => [id, expectation(expect.violations), title])
      print(table(['ID', 'EXPECTED', 'TITLE'], rows))
    })
}

function expectation(violations: readonly string[]): string {
  return violations.length === 0 ? 'clean' : violations.join(', ')
}

interface RunOptions {
  readonly seed: number
  readonly json?: boolean
  readonly html?: string
}

/** `lab run`: runs one scenario. */
export function runSubcommand(outcome: Outcome): Command {
  return new Command('run')
    .description('run a scenario with the real code, and check whether it ends as its definition expects')
    .argument('<scenario>', 'an id of `lab list`, or a JSON file')
    .option('--seed <n>', 'the seed: equal seeds give equal runs', parseSeed, 1)
    .option('--json', 'print expectation, observation, violations and timeline as JSON')
    .option('--html <file>', 'write the run to an HTML page with a diagram')
    .addHelpText(
      'after',
      '\nExit code 0 only if the scenario ends as expected: a baseline that must violate does violate.\n\nExamples:\n  $ leasehold lab run R1\n  $ leasehold lab run R1 --html r1.html\n  $ leasehold lab run ./my-scenario.json --seed 7',
    )
    .action(async (given: string, options: RunOptions) => {
      const lab = await import('@leasehold/lab')
      const result = await lab.runScenario(await scenarioOf(given), { seed: options.seed })
      if (!result.ok) outcome.code = EXIT_UNEXPECTED
      if (options.html !== undefined) writePage(options.html, lab.htmlPage(result))
      if (options.json === true) printJson(result)
      else if (options.html === undefined) print(`\n${lab.terminalPicture(result, PAINT)}\n`)
      else print(summary(result, options.html))
    })
}

async function scenarioOf(given: string): Promise<Scenario> {
  const { parseScenario, scenarioOf: known } = await import('@leasehold/lab')
  const found = known(given)
  if (found !== undefined) return found
  let text: string
  try {
    text = readFileSync(given, 'utf8')
  } catch (cause) {
    throw new InvalidError(`neither a scenario nor a readable file: ${given}`, {
      cause,
      hint: '`leasehold lab list` prints the scenarios',
    })
  }
  return parseScenario(text)
}

function writePage(file: string, page: string): void {
  try {
    writeFileSync(file, page)
  } catch (cause) {
    throw new StorageError(`cannot write ${file}`, { cause })
  }
}

function summary({ scenario, ok, observed }: ScenarioResult, file: string): string {
  return `${scenario}: ${expectation(observed.violations)}${ok ? ', as expected' : ', NOT as expected'}; the diagram is in ${file}`
}

function parseSeed(text: string): number {
  const seed = Number(text)
  if (/^[0-9]+$/.test(text) && seed <= SEED_MAX) return seed
  throw new InvalidError(`a seed is a whole number from 0 to ${SEED_MAX}, not ${JSON.stringify(text)}`)
}

const ACTORS = [pc.cyan, pc.magenta, pc.green, pc.blue]

const PAINT = {
  bold: pc.bold,
  dim: pc.dim,
  red: pc.red,
  green: pc.green,
  yellow: pc.yellow,
  actor: (n: number, text: string) => (ACTORS[n % ACTORS.length] ?? pc.cyan)(text),
}
