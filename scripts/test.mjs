// npm test: installs, builds, prepares the services, lints, checks the types of the tests, and runs them all.
// Arguments go to vitest, such as a folder. The last line is `N passed, N failed` (or `…, N skipped`).
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { lint } from './lint.mjs'
import { ensureNested, isNestedInstalled, nestedWorkspaces } from './nested.mjs'
import { ensureBuilt, ensureInstalled, root, runTool } from './setup.mjs'

const totals = { passed: 0, failed: 0, skipped: 0 }
const notes = []

function fail(message, count = 1) {
  totals.failed += count
  notes.push(message)
}

/** Ensures that the programs of the services are installed. Suites of missing ones skip themselves. */
async function prepareServices() {
  const { ensureServices } = await import('./services.mjs')
  const { missing } = ensureServices(undefined, { log: console.log })
  for (const { name, why } of missing) notes.push(`not on this machine: ${name} (${why})`)
}

/** Installs the nested workspaces. vitest excludes the folders of those that cannot be installed. */
function prepareNested() {
  for (const { folder, why } of ensureNested()) notes.push(`skipped: all suites of ${folder} (${why})`)
  for (const folder of nestedWorkspaces().filter(isNestedInstalled)) {
    if (runTool('typescript/bin/tsc', ['-p', folder]) !== 0) fail(`the tests of ${folder} have type errors`)
  }
}

function runVitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-test-'))
  try {
    const report = join(folder, 'report.json')
    const code = runTool('vitest/vitest.mjs', [
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...args,
    ])
    const results = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')).testResults : []
    const before = totals.failed
    for (const file of results) countFile(file)
    if (totals.passed + totals.failed === 0) fail('no test ran')
    else if (code !== 0 && totals.failed === before) fail(`vitest ended with ${code}: see above`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function countFile({ name, status, message, assertionResults }) {
  const file = relative(root, name)
  const skipped = new Map()
  let failed = 0
  for (const test of assertionResults) {
    if (test.status === 'passed') totals.passed += 1
    else if (test.status === 'failed') failed += 1
    else {
      totals.skipped += 1
      const suite = test.ancestorTitles.filter((title) => title !== '')[0] ?? test.title
      skipped.set(suite, (skipped.get(suite) ?? 0) + 1)
    }
  }
  totals.failed += failed
  if (status === 'failed' && failed === 0) fail(`${file}: ${message.split('\n')[0] || 'could not be loaded'}`)
  for (const [suite, count] of skipped) notes.push(`skipped: ${suite} (${count} in ${file})`)
}

function finish() {
  console.log()
  for (const note of notes) console.log(note)
  const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''
  console.log(`${totals.passed} passed, ${totals.failed} failed${skipped}`)
  process.exitCode = totals.failed > 0 ? 1 : 0
}

try {
  ensureInstalled()
  ensureBuilt()
  await prepareServices()
  for (const check of await lint()) fail(`lint: ${check} failed`)
  if (runTool('typescript/bin/tsc', ['-p', 'tsconfig.tests.json']) !== 0) fail('the tests have type errors')
  prepareNested()
  runVitest(process.argv.slice(2))
} catch (error) {
  fail(error instanceof Error ? error.message : String(error))
}
finish()
