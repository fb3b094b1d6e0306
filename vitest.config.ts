import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const packages = fileURLToPath(new URL('./packages/', import.meta.url))

// Tests run on the sources; only child processes (servers, CLI) run the build.
export default defineConfig({
  resolve: {
    alias: [
      { find: /^@leasehold\/([a-z]+)$/, replacement: `${packages}$1/src/index.ts` },
      { find: /^@leasehold\/([a-z]+)\/([a-z/-]+)$/, replacement: `${packages}$1/src/$2.ts` },
      { find: /^leasehold$/, replacement: `${packages}leasehold/src/index.ts` },
    ],
  },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'tests/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
  },
})
