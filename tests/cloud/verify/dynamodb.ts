// npm run verify:dynamodb -- --table NAME [--key id] [--region R] [--endpoint URL]: the guard against a real table of yours,
// whose primary key is one text attribute. Credentials come from the environment. It leaves a few small items.
import { parseArgs } from 'node:util'
import { DynamoDB } from '@aws-sdk/client-dynamodb'
import { fence } from '@leasehold/fence/dynamodb'
import { provesFencing } from '@leasehold/fence/testkit'
import { storm } from './storm.js'

const { values } = parseArgs({
  options: {
    table: { type: 'string' },
    key: { type: 'string', default: 'id' },
    region: { type: 'string' },
    endpoint: { type: 'string' },
    units: { type: 'string', default: '200' },
  },
})
if (values.table === undefined)
  throw new Error('usage: npm run verify:dynamodb -- --table NAME [--key id] [--region R]')
const { table, key } = values
const dynamo = new DynamoDB({
  ...(values.region === undefined ? {} : { region: values.region }),
  ...(values.endpoint === undefined ? {} : { endpoint: values.endpoint }),
})
const guard = fence(dynamo, { table, key: (resource) => ({ [key]: { S: resource } }), attempts: 50 })
const total = (n: number) => ({
  UpdateExpression: 'SET #n = :n',
  ExpressionAttributeNames: { '#n': 'total' },
  ExpressionAttributeValues: { ':n': { N: String(n) } },
})
const totalOf = (item: { readonly total?: { readonly N?: string } } | null) => Number(item?.total?.N ?? 0)

await provesFencing({
  open: (hold) => guard.open(hold),
  read: async (hold) => totalOf(await guard.read(hold)),
  write: (hold, n) => guard.update(hold, total(n)),
  remove: (hold) => guard.with(hold, (item) => item.delete()),
})
await storm(Number(values.units), {
  unit: (hold) => guard.with(hold, (item) => item.update(total(totalOf(item.item) + 1))),
  value: async (resource) => totalOf(await guard.latest(resource)),
})
