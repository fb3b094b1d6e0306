import type { FailedTest } from './direct.js'
import type { Hunted } from './hunt.js'
import type { Mutant } from './mutant.js'

/** Where a found mutant is written down, one row each. */
const BEGIN = '<!-- mutants: written by npm run mutants -->'
const END = '<!-- /mutants -->'

/** The rows that a document has, by the mutant's id. */
export function rowsIn(document: string): Map<string, string> {
  const rows = new Map<string, string>()
  for (const line of tableIn(document).split('\n')) {
    const id = /^\| `([a-z0-9-]+\/[a-z0-9-]+)` \|/.exec(line)?.[1]
    if (id !== undefined) rows.set(id, line)
  }
  return rows
}

/** The document with these rows in place of the old ones; a row of a mutant that was not hunted now stays. */
export function withRows(document: string, mutants: readonly Mutant[], hunted: readonly Hunted[]): string {
  const rows = rowsIn(document)
  for (const one of hunted) {
    const mutant = mutants.find(({ id }) => id === one.id)
    if (mutant) rows.set(one.id, rowOf(mutant, one))
  }
  const lines = mutants.flatMap(({ id }) => rows.get(id) ?? [])
  const table = [
    '| mutant | bug | found by | after | what is said |',
    '| --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n')
  const [before, after] = around(document)
  return `${before}${BEGIN}\n\n${table}\n\n${END}${after}`
}

/** Where the document and the list differ; empty when every mutant has its row, with its present text, and is found. */
export function drift(document: string, mutants: readonly Mutant[]): string[] {
  const rows = rowsIn(document)
  const problems: string[] = []
  for (const { id, bug } of mutants) {
    const row = rows.get(id)
    if (row === undefined) problems.push(`${id} has no row`)
    else if (cellsOf(row)[1] !== cell(bug)) problems.push(`${id} has the text of another bug`)
    else if (cellsOf(row)[2] === NOBODY) problems.push(`${id} is found by nobody`)
    rows.delete(id)
  }
  for (const id of rows.keys()) problems.push(`${id} has a row, and is no mutant any more`)
  return problems
}

const NOBODY = 'nobody'
const SIMULATION = 'simulation of the core'
const WHY_MAX = 110

/** One row: what finds it, after how many seeds, and the message of the check. */
export function rowOf(mutant: Mutant, hunted: Hunted): string {
  const { scenario, seed, seeds, profile, simulation, test } = hunted
  if (simulation && !seed && !scenario) {
    const by = test ? `${testText(test)}; ${SIMULATION}` : SIMULATION
    const cells = [cell(mutant.bug), by, seedText(simulation.seed), cell(shortened(simulation.why))]
    return `| \`${mutant.id}\` | ${cells.join(' | ')} |`
  }
  const explorer = `explorer, \`${profile}\`${mutant.members === undefined ? '' : `, ${mutant.members} members`}`
  const finders = [test && testText(test), scenario && `scenario ${scenario.id}`, seed && explorer]
  const by = finders.filter((finder) => finder !== undefined).join('; ') || NOBODY
  const after = seed ? seedText(seed.seed) : scenario ? scenarioText(hunted) : `not in ${seeds} seeds`
  const why = (seed ?? scenario)?.why ?? test?.title ?? ''
  return `| \`${mutant.id}\` | ${cell(mutant.bug)} | ${by} | ${after} | ${cell(shortened(why))} |`
}

function testText({ file }: FailedTest): string {
  return `test \`${file}\``
}

function scenarioText({ seeds, profile }: Hunted): string {
  return seeds === 0 ? '0 seeds' : `0 seeds; not in ${seeds} of \`${profile}\``
}

function seedText(seed: number): string {
  return seed === 1 ? '1 seed' : `${seed} seeds`
}

function shortened(text: string): string {
  const line = text.split('\n')[0] ?? ''
  return line.length > WHY_MAX ? `${line.slice(0, WHY_MAX - 1)}…` : line
}

function cell(text: string): string {
  return text.replace(/\|/g, '\\|').replace(/</g, '&lt;')
}

function cellsOf(row: string): string[] {
  return row
    .slice(1)
    .split(/(?<!\\)\|/)
    .map((text) => text.trim())
}

function tableIn(document: string): string {
  const [before, after] = around(document)
  return document.slice(before.length, document.length - after.length)
}

function around(document: string): readonly [string, string] {
  const begin = document.indexOf(BEGIN)
  const end = document.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`no ${BEGIN} … ${END} in the document`)
  return [document.slice(0, begin), document.slice(end + END.length)]
}
