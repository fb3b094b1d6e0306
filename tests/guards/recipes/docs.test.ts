import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Service } from '../../services/process.js'
import { startRedis } from '../../services/redis.js'
import { describeWith } from '../../services/suite.js'
import { blocksOf, runBlock } from '../../services/doc-blocks.js'
import { startLeasehold } from '../attack/targets.js'

const folder = fileURLToPath(new URL('../../../docs/guards/', import.meta.url))

const PAGES = [
  'docs/guards/files.md',
  'docs/guards/registers.md',
  'docs/guards/cas.md',
  'docs/guards/http.md',
  'docs/guards/cannot-compare.md',
]

describe('the code on the pages of the guards runs as printed', () => {
  let leasehold: Service
  beforeAll(async () => {
    leasehold = await startLeasehold()
  })
  afterAll(() => leasehold.stop())
  const blocks = PAGES.flatMap(blocksOf)
  it.each(blocks.map((block) => [block.title, block] as const))('%s', async (_title, block) => {
    const output = await runBlock(block, { 'http://127.0.0.1:4100': leasehold.url })
    if (block.code.includes('then 412')) expect(output).toBe('204\n412\n428\n')
  })
})

describeWith('Redis', 'the code on the page of Redis runs as printed', () => {
  let servers: Service[]
  beforeAll(async () => {
    servers = await Promise.all([startLeasehold(), startRedis()])
  })
  afterAll(() => Promise.all(servers.map((server) => server.stop())))
  it.each(blocksOf('docs/guards/redis.md').map((block) => [block.title, block] as const))(
    '%s',
    async (_title, block) => {
      const [leasehold, redis] = servers.map((server) => server.url) as [string, string]
      const urls = { 'http://127.0.0.1:4100': leasehold, 'redis://127.0.0.1:6379': redis }
      await runBlock(block, urls)
    },
  )
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
