import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocksOf, runBlock } from '../services/doc-blocks.js'
import { startLeasehold } from '../guards/attack/targets.js'
import type { Service } from '../services/process.js'
import { FakeDynamo } from './fakes/dynamodb.js'
import { FakeMongo } from './fakes/mongo.js'
import { FakeS3 } from './fakes/s3.js'

const KEYS = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }

describe('the code on the pages of the cloud guards runs as printed', () => {
  let leasehold: Service
  const s3 = new FakeS3()
  const dynamo = new FakeDynamo()
  const mongo = new FakeMongo()
  let urls: Record<string, string>
  beforeAll(async () => {
    leasehold = await startLeasehold()
    s3.bucket = 'invoices'
    dynamo.table = 'invoices'
    const [AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL_DYNAMODB, mongoUrl] = await Promise.all([
      s3.start(),
      dynamo.start(),
      mongo.start(),
    ])
    urls = { AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL_DYNAMODB, mongoUrl }
  })
  afterAll(() => Promise.all([leasehold.stop(), s3.stop(), dynamo.stop(), mongo.stop()]))

  const blocks = ['docs/guards/s3.md', 'docs/guards/dynamodb.md', 'docs/guards/mongodb.md'].flatMap(blocksOf)
  it.each(blocks.map((block) => [block.title, block] as const))('%s', async (_title, block) => {
    const { mongoUrl, ...endpoints } = urls
    const replacements = {
      'http://127.0.0.1:4100': leasehold.url,
      'mongodb://localhost/?replicaSet=rs': mongoUrl as string,
    }
    await runBlock(block, replacements, { folder: 'tests/cloud', env: { ...KEYS, ...endpoints } })
  })

  it('has done what the pages say', () => {
    expect([...s3.objects.keys()]).toContain('state/invoice-42')
    expect(dynamo.items.get('invoice-42')).toMatchObject({ total: { N: '7' } })
    expect(dynamo.items.get('invoice-42/entry-1')).toMatchObject({ amount: { N: '7' } })
    expect(mongo.find('invoices', 'invoice-42')).toMatchObject({ total: 7 })
    expect(mongo.find('orders', '7')).toMatchObject({ sent: true })
  })
})
