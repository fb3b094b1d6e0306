// npm run verify:mongo -- --url mongodb://HOST/?replicaSet=NAME [--db D] [--collection C]: the guard against a real MongoDB
// of yours. It leaves a few small documents in the collection.
import { parseArgs } from 'node:util'
import { fence } from '@leasehold/fence/mongo'
import { provesFencing } from '@leasehold/fence/testkit'
import { MongoClient } from 'mongodb'
import { storm } from './storm.js'

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    db: { type: 'string', default: 'test' },
    collection: { type: 'string', default: 'leasehold_verify' },
    units: { type: 'string', default: '200' },
  },
})
if (values.url === undefined) throw new Error('usage: npm run verify:mongo -- --url URL [--db D] [--collection C]')
const client = new MongoClient(values.url)
const collection = client.db(values.db).collection<{ _id: string }>(values.collection)
const guard = fence(collection, { attempts: 50 })
const totalOf = (document: { total?: unknown } | null) => Number(document?.total ?? 0)
try {
  await provesFencing({
    open: (hold) => guard.open(hold),
    read: async (hold) => totalOf(await guard.read(hold)),
    write: (hold, total) => guard.update(hold, { $set: { total } }),
    remove: (hold) => guard.with(hold, (document) => document.delete()),
  })
  await storm(Number(values.units), {
    unit: (hold) =>
      guard.with(hold, (document) => document.update({ $set: { total: totalOf(document.document) + 1 } })),
    value: async (resource) => totalOf(await guard.latest(resource)),
  })
} finally {
  await client.close()
}
