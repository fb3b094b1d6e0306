// The floors of the house: which package may import which, and where the machine may be touched.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow } from './sources.mjs'

/**
 * What the sources of a package may import. `floor`: imports go down, or stay on a floor where `imports` says so.
 * `types`: only with `import type`. `machine`: files that may import Node's modules (true: all of them). `folder`: where
 * the sources are, if not in `packages/NAME/src`.
 */
export const HOUSE = {
  core: { floor: 1, imports: [], machine: [] },
  raft: { floor: 1, imports: [], machine: [] },
  replica: { floor: 2, imports: ['core', 'raft'], machine: ['node/'] },
  client: { floor: 2, imports: ['core'], machine: ['platform.ts', 'node/'] },
  engines: { floor: 3, imports: ['core', 'client', 'replica'], machine: true },
  fence: { floor: 3, imports: ['core'], types: ['client'], machine: true },
  server: { floor: 4, imports: ['core', 'replica'], types: ['raft'], machine: true },
  leasehold: {
    floor: 4,
    imports: ['core', 'raft', 'replica', 'client', 'engines'],
    types: ['fence'],
    machine: true,
  },
  lab: { floor: 5, imports: ['core', 'raft', 'replica', 'client', 'engines', 'fence'], machine: true },
  console: { floor: 5, imports: ['client', 'core', 'lab'], machine: [] },
  cli: {
    floor: 6,
    imports: ['core', 'raft', 'replica', 'client', 'engines', 'fence', 'server', 'lab', 'leasehold'],
    machine: true,
  },
  tools: { floor: 6, folder: 'tools', imports: ['core', 'raft', 'lab'], machine: true },
}

/** Parts of packages with rules of their own. */
const PARTS = {
  'lab page': { floor: 5, folder: 'packages/lab/page/src', imports: ['core', 'replica', 'lab'], machine: [] },
}

const ROWS = { ...HOUSE, ...PARTS }
export const rowNames = Object.keys(ROWS)

/** The folder of the sources of a row, from the root. */
export const sourceFolder = (name) => ROWS[name].folder ?? `packages/${name}/src`

/** The sources of a row, as paths from the root. */
export const sourcesOf = (root, name) => filesBelow(root, sourceFolder(name)).filter((path) => !path.includes('/test/'))

/** Packages without runtime dependencies: whatever they import must be a sister package or Node's. */
const DEPENDENCY_FREE = new Set(['core', 'raft', 'client', 'fence'])

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?['"]([^'"]+)['"]|(\bimport)\(\s*['"]([^'"]+)['"]/g

/** All imports that the table forbids, one line each. */
export function floorProblems(root) {
  const problems = []
  for (const [name, rules] of Object.entries(ROWS)) {
    const folder = sourceFolder(name)
    for (const path of sourcesOf(root, name)) {
      const inside = path.slice(folder.length + 1)
      for (const found of imports(readFileSync(join(root, path), 'utf8'))) {
        const problem = problemOf({ name, rules, inside, ...found })
        if (problem !== undefined) problems.push(`${path}:${found.line}: ${problem}`)
      }
    }
  }
  return problems
}

/** Packages that the table does not know. */
export function unknownPackages(root) {
  return readdirSync(join(root, 'packages'))
    .filter((name) => HOUSE[name] === undefined && existsSync(join(root, 'packages', name, 'package.json')))
    .map((name) => `packages/${name}: not in the table of scripts/structure/floors.mjs`)
}

/** Rows of the table that break its own rule: an import from a higher floor. */
export function risingRows() {
  return Object.entries(ROWS).flatMap(([name, { floor, imports, types = [] }]) =>
    [...imports, ...types]
      .filter((other) => HOUSE[other].floor > floor)
      .map((other) => `${name} (floor ${floor}) may import ${other} (floor ${HOUSE[other].floor})`),
  )
}

/** The import statements of a source text. */
export function imports(text) {
  const code = text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\n)\s*\/\/[^\n]*/g, (comment) => comment.replace(/[^\n]/g, ' '))
  return [...code.matchAll(IMPORT)].map((match) => ({
    specifier: match[3] ?? match[5],
    typeOnly: match[2] !== undefined,
    line: code.slice(0, match.index + match[0].search(/\S/)).split('\n').length,
  }))
}

/** Why this import is a breach, or undefined. */
export function problemOf({ name, rules, inside, specifier, typeOnly }) {
  if (specifier.startsWith('.')) {
    const up = specifier.split('/').filter((part) => part === '..').length
    return up > inside.split('/').length - 1 ? `${specifier} leaves the package` : undefined
  }
  if (specifier.startsWith('node:')) {
    const free = rules.machine === true || rules.machine.some((place) => inside === place || inside.startsWith(place))
    return free || typeOnly
      ? undefined
      : `${name} may not import ${specifier} here (the machine belongs to ${places(rules)})`
  }
  const sister = /^@leasehold\/([a-z]+)/.exec(specifier)?.[1] ?? (specifier === 'leasehold' ? 'leasehold' : undefined)
  if (sister !== undefined) {
    if (rules.imports.includes(sister)) return undefined
    if (typeOnly && rules.types?.includes(sister)) return undefined
    return `${name} may not import ${sister}${rules.types?.includes(sister) ? ', except with `import type`' : ''}`
  }
  if (DEPENDENCY_FREE.has(name) && !typeOnly) return `${name} has no runtime dependencies, so no ${specifier}`
  return undefined
}

function places(rules) {
  return rules.machine.length === 0 ? 'other packages' : rules.machine.join(' and ')
}
