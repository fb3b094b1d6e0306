// npm run lint: format (biome), rules (oxlint with types), and the structure (structure.mjs).
import { ensureBuilt, ensureInstalled, root, runMain, runTool } from './setup.mjs'
import { structureProblems } from './structure.mjs'

/** Runs all checks; returns the names of those that found something. */
export async function lint() {
  const failed = []
  if (runTool('@biomejs/biome/bin/biome', ['format', '--diagnostic-level=error', '.']) !== 0) failed.push('format')
  if (runTool('oxlint/bin/oxlint', ['--type-aware', '--deny-warnings', '.']) !== 0) failed.push('rules')
  const problems = await structureProblems(root)
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) failed.push('structure')
  return failed
}

if (process.argv[1] === import.meta.filename) {
  await runMain(async () => {
    ensureInstalled()
    ensureBuilt()
    const failed = await lint()
    console.log(failed.length === 0 ? 'lint: ok' : `lint: ${failed.join(', ')} failed`)
    return failed.length === 0 ? 0 : 1
  })
}
