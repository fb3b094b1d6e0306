// The floors of the house: which package may import which, and where the machine may be touched.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

/**
 * What the sources of a package may import, floor by floor. `types`: only with `import type`.
 * `machine`: files that may import Node's modules (true: all of them).
 */
export const HOUSE = {
  core: { imports: [], machine: [] },
  raft: { imports: [], machine: [] },
  replica: { imports: ['core', 'raft'], machine: ['node/'] },
  client: { imports: ['core'], machine: ['platform.ts', 'node/'] },
  engines: { imports: ['core', 'client', 'replica'], machine: true },
  fence: { imports: ['core'], types: ['client'], machine: true },
  server: { imports: ['core', 'replica'], types: ['raft'], machine: true },
  lab: { imports: ['core', 'raft', 'replica', 'client', 'engines', 'fence'], machine: true },
  leasehold: { imports: ['core', 'raft', 'replica', 'client', 'engines'], types: ['fence'], machine: true },
  cli: {
    imports: ['core', 'raft', 'replica', 'client', 'engines', 'fence', 'server', 'lab', 'leasehold'],
    machine: true,
  },
  console: { imports: ['client', 'core', 'lab'], machine: [] },
}

/** Packages without runtime dependencies: whatever they import must be a sister package or Node's. */
const DEPENDENCY_FREE = new Set(['core', 'raft', 'client', 'fence'])

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?['"]([^'"]+)['"]|(\bimport)\(\s*['"]([^'"]+)['"]/g

/** All breaches, one line each. */
export function structureProblems(root) {
  const problems = []
  for (const [name, rules] of Object.entries(HOUSE)) {
    for (const file of sources(join(root, 'packages', name, 'src'))) {
      const where = relative(root, file).split(sep).join('/')
      const inside = where.split('/').slice(3).join('/')
      for (const found of imports(readFileSync(file, 'utf8'))) {
        const problem = problemOf({ name, rules, inside, ...found })
        if (problem !== undefined) problems.push(`${where}:${found.line}: ${problem}`)
      }
    }
  }
  return problems
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

function sources(folder) {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|tsx)$/.test(entry.name))
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
      .sort()
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}
