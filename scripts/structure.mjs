// npm run lint runs these checks of the structure: floors, import cycles, sizes, private members, file names, words.
//   node scripts/structure.mjs            prints the problems
//   node scripts/structure.mjs --shrink   lowers the exceptions to what is left
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cyclesOf, importGraph, loopOf } from './structure/cycles.mjs'
import { floorProblems, risingRows, rowNames, sourceFolder, sourcesOf, unknownPackages } from './structure/floors.mjs'
import { confusableNames } from './structure/names.mjs'
import { lineCount, longFunctions, MAX_FILE_LINES, MAX_FUNCTION_LINES } from './structure/sizes.mjs'
import { filesBelow, parseFiles } from './structure/sources.mjs'
import { privateMembers } from './structure/style.mjs'
import { dialectWords } from './structure/words.mjs'

export { HOUSE, imports, problemOf } from './structure/floors.mjs'

/** Folders whose folders have the same set of files: one for each engine, store or dialect. */
const ALIKE_FOLDERS = new Set([
  'packages/engines/src',
  'packages/fence/src',
  'packages/fence/src/sql',
  'packages/leasehold/src/compat',
])

const EXCEPTIONS = 'scripts/structure/exceptions.json'
/** Where files over 500 lines are looked for. */
const ALL_CODE = ['packages', 'tools', 'tests', 'bench', 'scripts']

/** What the checks find, by kind: a count (or a number of lines) for each key, and a message. */
export async function structureFindings(root) {
  const findings = { cycles: new Map(), longFunctions: new Map(), longFiles: new Map(), privateMembers: new Map() }
  findings.confusableNames = new Map()
  findings.words = new Map()
  const add = (kind, key, message, count = 1) => {
    const before = findings[kind].get(key) ?? { count: 0, messages: [] }
    findings[kind].set(key, { count: before.count + count, messages: [...before.messages, message] })
  }

  const sources = await parseFiles(
    root,
    rowNames.flatMap((name) => sourcesOf(root, name)),
  )
  const graph = importGraph(sources, sisterFiles(sources.map(({ path }) => path)))
  for (const group of cyclesOf(graph)) {
    const loop = loopOf(graph, group).join(' → ')
    add('cycles', packageOf(group[0]), `import cycle: ${loop}`, group.length)
  }
  for (const source of sources) {
    for (const { name, line, lines } of longFunctions(source)) {
      const message = `${source.path}:${line}: ${name} has ${lines} lines, more than ${MAX_FUNCTION_LINES}`
      add('longFunctions', `${source.path} ${name}`, message, lines)
    }
    for (const { what, line } of privateMembers(source)) {
      add('privateMembers', packageOf(source.path), `${source.path}:${line}: ${what}: private members are #names`)
    }
  }
  for (const path of ALL_CODE.flatMap((folder) => filesBelow(root, folder, ['.ts', '.tsx', '.mjs']))) {
    const lines = lineCount(readFileSync(join(root, path), 'utf8'))
    if (lines > MAX_FILE_LINES) add('longFiles', path, `${path}: ${lines} lines, more than ${MAX_FILE_LINES}`, lines)
  }
  for (const name of rowNames) {
    const paths = sourcesOf(root, name)
    for (const { key, files } of confusableNames(paths, ALIKE_FOLDERS)) {
      add('confusableNames', `${name}: ${key}`, `${name}: names that a reader confuses: ${files.join(', ')}`)
    }
    for (const path of paths) {
      for (const { word, line } of dialectWords(readFileSync(join(root, path), 'utf8'))) {
        add('words', name, `${path}:${line}: "${word}"`)
      }
    }
  }
  return findings
}

const packageOf = (path) => rowNames.find((name) => path.startsWith(`${sourceFolder(name)}/`))

/** The file behind each specifier of a package of ours: `@leasehold/lab/world/index` is `packages/lab/src/world/index.ts`. */
function sisterFiles(paths) {
  const files = new Map()
  for (const path of paths) {
    const [, name, inside] = /^packages\/([a-z]+)\/src\/(.*)\.tsx?$/.exec(path) ?? []
    if (name === undefined) continue
    const scope = name === 'leasehold' ? name : `@leasehold/${name}`
    files.set(inside === 'index' ? scope : `${scope}/${inside}`, path)
  }
  return files
}

/** The exceptions: for each kind and key how much is allowed, and why. */
export function readExceptions(root) {
  return JSON.parse(readFileSync(join(root, EXCEPTIONS), 'utf8'))
}

/** What goes beyond the exceptions (`problems`), and exceptions that allow more than there is (`stale`). */
export function judge(findings, exceptions) {
  const problems = []
  const stale = []
  for (const [kind, found] of Object.entries(findings)) {
    const allowed = exceptions[kind] ?? {}
    for (const [key, { count, messages }] of found) {
      const limit = allowed[key]?.count ?? 0
      if (count <= limit) continue
      if (limit > 0) problems.push(`${kind}: ${key}: ${count}, but the exception allows ${limit}`)
      problems.push(...messages)
    }
    for (const [key, { count }] of Object.entries(allowed)) {
      const now = found.get(key)?.count ?? 0
      if (now < count)
        stale.push(`${kind}: the exception "${key}" allows ${count}, and there ${now === 1 ? 'is' : 'are'} ${now}`)
    }
  }
  return { problems, stale }
}

/** The exceptions without what is no longer needed. Nothing is added. */
export function shrink(findings, exceptions) {
  const smaller = {}
  for (const [kind, allowed] of Object.entries(exceptions)) {
    smaller[kind] = {}
    for (const [key, { count, ...rest }] of Object.entries(allowed)) {
      const now = findings[kind].get(key)?.count ?? 0
      if (now > 0) smaller[kind][key] = { count: Math.min(count, now), ...rest }
    }
  }
  return smaller
}

/** All problems of the structure, one line each. */
export async function structureProblems(root) {
  return [
    ...risingRows(),
    ...floorProblems(root),
    ...unknownPackages(root),
    ...judge(await structureFindings(root), readExceptions(root)).problems,
  ]
}

/** Exceptions that allow more than there is: `--shrink` lowers them. */
export async function staleExceptions(root) {
  return judge(await structureFindings(root), readExceptions(root)).stale
}

if (process.argv[1] === import.meta.filename) {
  const root = join(import.meta.dirname, '..')
  if (process.argv.includes('--shrink')) {
    const smaller = shrink(await structureFindings(root), readExceptions(root))
    writeFileSync(join(root, EXCEPTIONS), `${JSON.stringify(smaller, undefined, 2)}\n`)
  }
  const problems = [...(await structureProblems(root)), ...(await staleExceptions(root))]
  for (const problem of problems) console.log(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
}
