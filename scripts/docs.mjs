// Writes the generated pages of docs/ from the code; with --check, only reports whether they are up to date.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { housePicture } from './house-picture.mjs'
import { ensureBuilt, ensureInstalled, root, runMain } from './setup.mjs'
import { HOUSE } from './structure.mjs'

const HEAD = `# Errors

<!-- Generated from packages/core/src/errors.ts by scripts/docs.mjs: do not edit. -->

Every failure is one typed error: an instance of \`LeaseholdError\` with \`code\`, \`retryable\`, \`hint\` (what to do next) and
\`cause\`. \`instanceof\` works across two copies of the package. Over HTTP the same fields come as \`application/problem+json\`;
the command line prints the hint and exits with the exit code.

A lock that was not acquired (\`busy\`, \`timeout\`, \`aborted\`) and a lost hold (\`lost\`) are different errors. \`unreachable\` does not end a
hold: only its deadline does.
`

/** The first paragraph above each class of errors.ts. */
function classComments() {
  const text = readFileSync(`${root}packages/core/src/errors.ts`, 'utf8')
  const comments = new Map()
  for (const match of text.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export class (\w+)/g)) {
    const words = match[1]
      .replace(/^\s*\* ?/gm, '')
      .trim()
      .replace(/\s+/g, ' ')
    comments.set(match[2], words)
  }
  return comments
}

async function errorsPage() {
  const { ERRORS, LOST_REASONS } = await import('../packages/core/dist/index.js')
  const comments = classComments()
  const rows = Object.entries(ERRORS).map(([code, row]) => {
    const meaning = comments.get(row.class)
    if (meaning === undefined) throw new Error(`packages/core/src/errors.ts: ${row.class} has no comment`)
    return `| \`${code}\` | ${row.class} | ${row.http} | ${row.exit} | ${row.retryable ? 'yes' : 'no'} | ${meaning} |`
  })
  const reasons = LOST_REASONS.map((reason) => `\`${reason}\``).join(', ')
  return `${HEAD}
| code | class | HTTP | CLI exit | retryable | meaning |
| --- | --- | --- | --- | --- | --- |
${rows.join('\n')}

The reasons of a \`HoldLostError\`: ${reasons}.
`
}

/** The baselines that docs/lab.md shows as diagrams. Equal seeds give equal diagrams on every machine. */
const GALLERY = ['R1', 'R2', 'R2c', 'R2d', 'R3a', 'R3b', 'R3c', 'R4', 'R5', 'R6', 'R8', 'R9']

async function gallery() {
  const { runScenario, scenarioOf, svgImage } = await import('../packages/lab/dist/index.js')
  const images = []
  for (const id of GALLERY) {
    const result = await runScenario(scenarioOf(id))
    if (!result.ok) throw new Error(`${id} does not end as expected: ${result.differences.join('; ')}`)
    images.push([`docs/lab/${id.toLowerCase()}.svg`, svgImage(result)])
  }
  return images
}

/** The description of the HTTP interface, and of the settings of `serve`. */
async function documents() {
  const { openApiDocument } = await import('../packages/server/dist/index.js')
  const { configSchema } = await import('../packages/cli/dist/serve/settings.js')
  const text = (value) => `${JSON.stringify(value, undefined, 2)}\n`
  return [
    ['docs/openapi.json', text(openApiDocument())],
    ['docs/serve-config.schema.json', text(configSchema())],
  ]
}

/** The generated pages: file name and text. */
export async function pages() {
  return new Map([
    ['docs/errors.md', await errorsPage()],
    ['docs/architecture.svg', housePicture(HOUSE)],
    ...(await documents()),
    ...(await gallery()),
  ])
}

if (process.argv[1] === import.meta.filename) {
  await runMain(async () => {
    ensureInstalled()
    ensureBuilt()
    let stale = 0
    for (const [file, text] of await pages()) {
      const path = root + file
      if (existsSync(path) && readFileSync(path, 'utf8') === text) continue
      stale += 1
      if (process.argv.includes('--check')) console.error(`${file} is out of date: run node scripts/docs.mjs`)
      else {
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, text)
      }
    }
    return stale > 0 && process.argv.includes('--check') ? 1 : 0
  })
}
