// A program for tests: does what one of the cases does, and prints a line after it.
import { createLocks } from 'leasehold'

const [, , url, kind, text = '{}'] = process.argv
const print = (line) => process.stdout.write(`${line}\n`)
const locks = createLocks(url, { ttl: '10s', connectTimeout: '2s', ...JSON.parse(text) })
/** Waits for a line on stdin, and leaves nothing behind that keeps the process alive. */
const told = () =>
  new Promise((resolve) => {
    process.stdin.once('data', () => {
      process.stdin.destroy()
      resolve()
    })
  })

const cases = {
  close: async () => {
    const hold = await locks.acquire('close')
    print(hold.state)
    await told()
    await locks.close()
    print('closed')
  },
  'close unused': async () => {
    await locks.close()
    print('closed')
  },
  'close while opening': async () => {
    locks.acquire('opening').catch(() => {})
    await locks.close()
    print('closed')
  },
  failed: async () => {
    await locks.acquire('failed', { wait: '1s' }).catch((error) => print(error.code))
  },
  released: async () => {
    print(await locks.request('released', () => 'ran'))
    print((await locks.query({ name: 'released' })).held.length)
  },
  held: async () => {
    print((await locks.acquire('held')).state)
  },
  lost: async () => {
    const hold = await locks.acquire('lost', { persistent: false })
    print(hold.state)
    print((await hold.lost).reason)
  },
  'lost persistent': async () => {
    const hold = await locks.acquire('lost persistent', { persistent: true })
    print(hold.state)
    print((await hold.lost).reason)
  },
  wait: async () => {
    print('waiting')
    print((await locks.acquire('wait')).state)
  },
  watch: async () => {
    const events = locks.watch({ prefix: 'watched' })
    print('watching')
    print((await events.next()).value.kind)
  },
  request: async () => {
    await locks
      .request('request', (hold) => {
        print('running')
        return new Promise((resolve) => hold.signal.addEventListener('abort', resolve))
      })
      .catch((error) => print(error.reason))
  },
}
await cases[kind]()
print('end')
