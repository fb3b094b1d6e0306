import { afterAll, beforeAll, expect, it } from 'vitest'
import { Workshop } from '../../packages/cli/test/support/cli.js'
import { blocksOf, runBlock } from '../services/doc-blocks.js'
import { type Postgres, startPostgres } from '../services/postgres.js'
import type { Service } from '../services/process.js'
import { startRedis } from '../services/redis.js'
import { describeWith } from '../services/suite.js'

describeWith('PostgreSQL', 'docs/engines/postgres.md and the command line on PostgreSQL', () => {
  const workshop = new Workshop()
  let server: Postgres
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(async () => {
    await workshop.close()
    await server.stop()
  })

  it('runs the code as printed', async () => {
    const blocks = blocksOf('docs/engines/postgres.md')
    expect(blocks.length).toBeGreaterThan(0)
    for (const block of blocks) await runBlock(block, { 'postgres://localhost/shop': server.url })
  })

  it('runs commands with LEASEHOLD_URL, and begins an epoch by command', async () => {
    const url = ['--url', server.url]
    const echo = [process.execPath, '-e', 'console.log(process.env.LEASEHOLD_FENCING_TOKEN)']
    const run = await workshop.run(['run', 'job', ...url, '--', ...echo])
    expect([run.code, run.stderr]).toEqual([0, ''])
    expect(await workshop.run(['put', 'flags', '{"on":true}', ...url])).toMatchObject({ code: 0 })
    expect((await workshop.run(['get', 'flags', ...url])).stdout).toContain('on')
    expect((await workshop.run(['ls', '--json', ...url])).stdout).toContain('"held":[]')
    expect(await workshop.run(['engines', 'epoch', '7', ...url])).toMatchObject({ code: 0 })
    expect((await workshop.run(['engines', 'epoch', '7', ...url])).code).toBe(64)
    const later = await workshop.run(['run', 'job', ...url, '--', ...echo])
    expect(BigInt(later.stdout.trim())).toBeGreaterThan(BigInt(run.stdout.trim()))
    expect((await workshop.run(['engines', 'sql', 'postgres', '--schema', 'other'])).stdout).toContain('"other".append')
  })
})

describeWith('Redis', 'docs/engines/redis.md', () => {
  let server: Service
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it('runs the code as printed', async () => {
    const blocks = blocksOf('docs/engines/redis.md')
    expect(blocks.length).toBeGreaterThan(0)
    for (const block of blocks) await runBlock(block, { 'redis://127.0.0.1:6379': server.url })
  })
})
