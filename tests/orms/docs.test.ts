import { afterAll, beforeAll, it } from 'vitest'
import { blocksOf, runBlock } from '../services/doc-blocks.js'
import { startPostgres } from '../services/postgres.js'
import type { Service } from '../services/process.js'
import { describeWith } from '../services/suite.js'
import { generatedClient } from './src/mappers.js'

describeWith('PostgreSQL', 'the code of docs/guards/mappers.md runs as printed', () => {
  let database: Service
  beforeAll(async () => {
    database = await startPostgres()
    await generatedClient()
  })
  afterAll(() => database?.stop())
  it.each(blocksOf('docs/guards/mappers.md').map((block) => [block.title, block] as const))('%s', async (_, block) => {
    await runBlock(block, { 'postgres://localhost/shop': database.url }, { folder: 'tests/orms' })
  })
})
