// npm run verify:s3 -- --bucket NAME [--prefix P] [--region R] [--endpoint URL]: the guard against a real bucket of yours.
// Credentials come from the environment, as the SDK finds them. It leaves a few small objects under the prefix.
import { parseArgs } from 'node:util'
import { S3 } from '@aws-sdk/client-s3'
import { checkCasStore } from '@leasehold/fence/cas'
import { fence, s3Store } from '@leasehold/fence/s3'
import { storm } from './storm.js'
import { provesFencing } from '@leasehold/fence/testkit'

const { values } = parseArgs({
  options: {
    bucket: { type: 'string' },
    prefix: { type: 'string', default: `leasehold-verify/${Date.now()}/` },
    region: { type: 'string' },
    endpoint: { type: 'string' },
    units: { type: 'string', default: '100' },
  },
})
if (values.bucket === undefined)
  throw new Error('usage: npm run verify:s3 -- --bucket NAME [--prefix P] [--endpoint URL]')
const { bucket, prefix } = values
const s3 = new S3({
  ...(values.region === undefined ? {} : { region: values.region }),
  ...(values.endpoint === undefined ? {} : { endpoint: values.endpoint, forcePathStyle: true }),
})
const numberOf = (bytes: Uint8Array | null) => Number(bytes === null ? 0 : new TextDecoder().decode(bytes))

await checkCasStore(s3Store(s3, { bucket, prefix }))
console.log('holds   the store keeps the conditions of conditional writes')
const guard = fence(s3, { bucket, prefix })
await provesFencing({
  open: (hold) => guard.open(hold),
  read: async (hold) => numberOf(await guard.read(hold)),
  write: (hold, n) => guard.write(hold, String(n)),
  remove: (hold) => guard.delete(hold),
})
const busy = fence(s3, { bucket, prefix, attempts: 50 })
await storm(Number(values.units), {
  unit: (hold) => busy.with(hold, (object) => object.put(String(numberOf(object.get()) + 1))),
  value: async (resource) => numberOf(await busy.latest(resource)),
})
