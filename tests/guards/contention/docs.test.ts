import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Workshop } from '../../../packages/cli/test/support/cli.js'
import { startMariadb } from '../../services/mariadb.js'
import { startPostgres } from '../../services/postgres.js'
import type { Service } from '../../services/process.js'
import { describeWith, type ServiceName } from '../../services/suite.js'
import { blocksOf, type Replacements, runBlock } from '../../services/doc-blocks.js'

const PAGES: readonly { page: string; needs?: ServiceName; start?: () => Promise<Service>; printed?: string }[] = [
  { page: 'docs/choosing.md', needs: 'PostgreSQL', start: startPostgres, printed: 'postgres://localhost/shop' },
  {
    page: 'docs/guards/postgresql.md',
    needs: 'PostgreSQL',
    start: startPostgres,
    printed: 'postgres://localhost/shop',
  },
  { page: 'docs/guards/mysql.md', needs: 'MariaDB', start: startMariadb, printed: 'mysql://localhost/shop' },
  { page: 'docs/guards/sqlite.md' },
]

for (const { page, needs, start, printed } of PAGES) {
  const title = `the code of ${page} runs as printed`
  const suite = () => {
    const workshop = new Workshop()
    let database: Service | undefined
    let replacements: Replacements
    beforeAll(async () => {
      database = await start?.()
      const service = await workshop.serve(workshop.folder())
      replacements = { 'http://127.0.0.1:4100': service.url, ...(printed ? { [printed]: database?.url ?? '' } : {}) }
    })
    afterAll(async () => {
      await workshop.close()
      await database?.stop()
    })
    const blocks = blocksOf(page)
    it('has code', () => expect(blocks.length).toBeGreaterThan(1))
    // In their order: the first one makes the tables.
    it.each(blocks.map((block) => [block.title, block] as const))('%s', async (_, block) => {
      await runBlock(block, replacements)
    })
  }
  if (needs === undefined) describe(title, suite)
  else describeWith(needs, title, suite)
}
