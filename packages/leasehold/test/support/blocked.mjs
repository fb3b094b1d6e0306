// A program for tests: takes a lock, blocks its thread, and prints what it knows before and after.
import { connect } from 'leasehold'

const [, , url, text] = process.argv
const { name, keepAlive, blockMs, maxHold, settleMs = 0, leave = false } = JSON.parse(text)
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

const locks = await connect(url, { ttl: '3s', keepAlive })
const hold = await locks.acquire(name, maxHold === undefined ? {} : { maxHold })
print({ state: hold.state, token: String(hold.token) })
if (!leave) {
  // What was printed has to leave this process first.
  await new Promise((resolve) => setTimeout(resolve, 50))
  const end = performance.now() + blockMs
  while (performance.now() < end);
  if (settleMs > 0) await new Promise((resolve) => setTimeout(resolve, settleMs))
  print({ state: hold.state, reason: hold.state === 'lost' ? (await hold.lost).reason : undefined })
  print(await hold.release())
  await locks.close()
}
