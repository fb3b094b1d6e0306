import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { isNestedInstalled, nestedWorkspaces } from './scripts/nested.mjs'

const packages = fileURLToPath(new URL('./packages/', import.meta.url))

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
    // Two processors: most of the time tests wait for leases to end, or for servers.
    maxWorkers: 3,
  },
})
