import { availableParallelism } from 'node:os'
import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { isNestedInstalled, nestedWorkspaces } from './scripts/nested.mjs'
import { SLOW_TESTS } from './scripts/slow-tests.mjs'

const root = fileURLToPath(new URL('./', import.meta.url))
const packages = fileURLToPath(new URL('./packages/', import.meta.url))

/** More workers than processors: most of the time tests wait for leases to expire, or for servers. */
const WORKERS_PER_PROCESSOR = 2
const WORKERS_MAX = 12

/** Starts the slow files first, so that none of them runs alone at the end. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const slow = SLOW_TESTS.toReversed()
    const rank = ({ moduleId }: TestSpecification) => slow.indexOf(relative(root, moduleId).split(sep).join('/'))
    return (await super.sort(files)).toSorted((a, b) => rank(b) - rank(a))
  }
}

// Tests run on the sources; only child processes (servers, CLI) run the build.
export default defineConfig({
  resolve: {
    alias: [
      { find: /^@leasehold\/([a-z]+)$/, replacement: `${packages}$1/src/index.ts` },
      { find: /^@leasehold\/([a-z]+)\/([a-z/-]+)$/, replacement: `${packages}$1/src/$2.ts` },
      { find: /^leasehold\/([a-z/-]+)$/, replacement: `${packages}leasehold/src/$1.ts` },
      { find: /^leasehold$/, replacement: `${packages}leasehold/src/index.ts` },
    ],
  },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'tests/**/*.test.ts', 'tools/*/test/**/*.test.ts', 'spec/*.test.ts'],
    // Suites with packages of their own, where these are not installed: scripts/test.mjs tells which, and why.
    exclude: [
      ...configDefaults.exclude,
      ...nestedWorkspaces()
        .filter((folder) => !isNestedInstalled(folder))
        .map((folder) => `${folder}/**`),
    ],
    // Bounds for what hangs, far above what a busy machine takes.
    testTimeout: 180_000,
    hookTimeout: 240_000,
    // What is polled for should happen soon; a busy machine takes its time.
    expect: { poll: { timeout: 20_000, interval: 20 } },
    pool: 'forks',
    maxWorkers: Math.min(WORKERS_PER_PROCESSOR * availableParallelism() + 1, WORKERS_MAX),
    sequence: { sequencer: SlowFirst },
  },
})
