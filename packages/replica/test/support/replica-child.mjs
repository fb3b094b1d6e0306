// Runs a member and prints the hold of every acknowledged acquire, until it is killed.
import { openNodeReplica } from '../../dist/node.js'

const [dir, from] = process.argv.slice(2)
const replica = await openNodeReplica({
  dir,
  segmentBytes: 256 * 1024,
  reserveBytes: 64 * 1024,
  snapshotBytes: 100_000,
  keepAlive: true,
})
const submit = (command) => new Promise((resolve) => replica.submit(command, resolve))
const nonce = from.padStart(32, '0')
const { session } = await submit({
  kind: 'openSession',
  nonce,
  secret: nonce,
  ttlMs: 3_600_000,
  client: 'child',
  local: false,
})
let next = Number(from)
let request = 1
for (let worker = 0; worker < 8; worker++) void work()

async function work() {
  for (;;) {
    const name = `lock-${next++}`
    const own = request++
    const ack = { lowest: Math.max(1, own - 100), also: [] }
    const locks = [{ name, mode: 'exclusive' }]
    const rest = { waitMs: 0, lockDelayMs: 0, persistent: false, portable: false, data: new Uint8Array(100) }
    const result = await submit({ kind: 'acquire', session, request: own, ack, locks, ...rest })
    if (result.kind === 'granted') process.stdout.write(`${name} ${result.grant.hold}\n`)
  }
}
