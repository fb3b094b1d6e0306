// node scripts/run.mjs packages/client/test/mutants/main.ts [FIRST [LAST]]
// Breaks one rule of the client after another, and tells which test has noticed.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { MUTANTS } from './list.js'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const CONFIG = 'packages/client/test/mutants/vitest.config.ts'
const LIMIT_MS = 60_000

const [first = 0, last = MUTANTS.length - 1] = process.argv.slice(2).map(Number)
let alive = 0
for (let i = first; i <= last && i < MUTANTS.length; i++) {
  const mutant = MUTANTS[i]
  if (!mutant) break
  const args = ['vitest', 'run', '--config', CONFIG, `packages/client/test/${mutant.test}`, '-t', mutant.name]
  const { status, stdout, stderr, error } = spawnSync('npx', args, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, MUTANT: String(i), NO_COLOR: '1' },
    timeout: LIMIT_MS,
  })
  // A test that hangs has noticed too; one that did not run has not.
  const failed = /Tests +\d+ failed/.test(stdout) || error !== undefined
  if (!failed) alive++
  console.log(`${failed ? 'noticed ' : 'ALIVE   '} ${String(i).padStart(2)}  ${mutant.rule}`)
  if (!failed && status !== 0) console.log(stdout.slice(-2_000), stderr.slice(-2_000))
}
console.log(alive === 0 ? 'every broken rule was noticed' : `${alive} broken rules were not noticed`)
process.exit(alive === 0 ? 0 : 1)
