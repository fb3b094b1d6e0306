import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Service } from '../services/process.js'
import { startRedis } from '../services/redis.js'
import { describeWith } from '../services/suite.js'
import { blocksOf, runBlock } from './pages.js'
import { startLeasehold } from './targets.js'

const folder = fileURLToPath(new URL('../../docs/guards/', import.meta.url))

describe('the code on the pages of the guards runs as printed', () => {
  let leasehold: Service
  beforeAll(async () => {
    leasehold = await startLeasehold()
  })
  afterAll(() => leasehold.stop())
  const blocks = ['files', 'registers', 'cas', 'http', 'cannot-compare'].flatMap(blocksOf)
  it.each(blocks.map((block) => [block.where, block] as const))('%s', async (_where, block) => {
    const { code, output } = await runBlock(block, '', { 'http://127.0.0.1:4100': leasehold.url })
    expect([code, output]).toEqual([0, output])
    if (block.code.includes('then 412')) expect(output).toBe('204\n412\n428\n')
  })
})

describeWith('Redis', 'the code on the page of Redis runs as printed', () => {
  let servers: Service[]
  beforeAll(async () => {
    servers = await Promise.all([startLeasehold(), startRedis()])
  })
  afterAll(() => Promise.all(servers.map((server) => server.stop())))
  it.each(blocksOf('redis').map((block) => [block.where, block] as const))('%s', async (_where, block) => {
    const [leasehold, redis] = servers.map((server) => server.url) as [string, string]
    const urls = { 'http://127.0.0.1:4100': leasehold, 'redis://127.0.0.1:6379': redis }
    const { code, output } = await runBlock(block, '', urls)
    expect([code, output]).toEqual([0, output])
  })
})

describe('the pages of the guards', () => {
  it('link to pages that exist', () => {
    const missing = readdirSync(folder).flatMap((page) => {
      const text = readFileSync(folder + page, 'utf8')
      const targets = [...text.matchAll(/\]\(([^)#:]+)/g)].map((match) => match[1] as string)
      return targets.filter((target) => !existsSync(folder + target)).map((target) => `${page}: ${target}`)
    })
    expect(missing).toEqual([])
  })
})
