// One process of the attack: asks for its turn, reads, stumbles, writes one more, and tells how it went.
import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const LOCK = 'attack'
const SWEEP_SHARE = 0.05
const { store, guarded, target, seed, leaseMs } = JSON.parse(process.argv[2] ?? '{}')
const random = randomOf(seed)
const decode = (bytes) => Number(bytes === null ? 0 : new TextDecoder().decode(bytes))

/** A small generator with a seed (xorshift32): numbers in [0, 1). */
function randomOf(from) {
  let x = from >>> 0 || 1
  return () => {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    x >>>= 0
    return x / 2 ** 32
  }
}

/** Mostly nothing, sometimes far more than the lease. */
async function stumble() {
  const dice = random()
  if (dice < 0.7) return
  await sleep(dice < 0.93 ? random() * 2 : leaseMs * (0.5 + random() * 2))
}

/** A hold whose process does not know that it has ended, as after a pause. */
function unaware(hold) {
  return new Proxy(hold, {
    get(object, property) {
      if (property === 'assertHeld') return () => {}
      const value = Reflect.get(object, property, object)
      return typeof value === 'function' ? value.bind(object) : value
    },
  })
}

const stores = {
  async redis() {
    const [{ Redis }, { fence: fenceRedis }] = await Promise.all([import('ioredis'), import('@leasehold/fence/redis')])
    const redis = new Redis(target)
    const guard = fenceRedis(redis)
    return {
      read: async (hold) => Number(guarded ? await guard.get(hold) : await redis.get(LOCK)),
      write: (hold, n) => (guarded ? guard.set(hold, String(n)) : redis.set(LOCK, String(n))),
      close: () => redis.quit(),
    }
  },
  async fs() {
    const { fence: fenceFile } = await import('@leasehold/fence/fs')
    const file = fenceFile(target)
    return {
      read: async (hold) =>
        guarded ? decode(await file.read(hold)) : Number(await readFile(target, 'utf8').catch(() => 0)),
      async write(hold, n) {
        if (!guarded) return await writeFile(target, String(n))
        await file.write(hold, String(n))
        if (random() < SWEEP_SHARE) await file.sweep(hold).catch(ignoreStale)
      },
      close() {},
    }
  },
}

function ignoreStale(error) {
  if (error.code !== 'stale-token') throw error
}

function turn() {
  return new Promise((resolve) => {
    process.once('message', resolve)
    process.send({ kind: 'next' })
  })
}

async function unit(body) {
  try {
    await body()
    process.send({ kind: 'over', outcome: 'acknowledged' })
  } catch (error) {
    if (error.code === 'unknown-outcome') return void process.send({ kind: 'over', outcome: 'unknown' })
    const refused = ['stale-token', 'lost', 'not-holder', 'session-ended'].includes(error.code)
    if (!refused) process.send({ kind: 'over', outcome: 'failed', why: `${error.code} ${error.stack}` })
    else process.send({ kind: 'over', outcome: 'refused' })
  }
}

/** The lock is the parent's: it lets every lease lapse after a while, held or not. */
async function underParentsLock() {
  const resource = await stores[store]()
  for (let grant = await turn(); grant.token !== null; grant = await turn()) {
    const token = BigInt(grant.token)
    const hold = { names: [LOCK], mode: 'exclusive', tokenOf: () => token, assertHeld() {} }
    await unit(async () => {
      const seen = await resource.read(hold)
      await stumble()
      await resource.write(hold, seen + 1)
    })
  }
  await resource.close()
}

/** The lock is the service's; the parent steals it now and then. */
async function underTheService() {
  const [{ connect }, { fence: fenceRegister }] = await Promise.all([
    import('leasehold'),
    import('@leasehold/fence/register'),
  ])
  const locks = await connect(target)
  const register = locks.register('attack/counter')
  const guard = fenceRegister(register)
  while ((await turn()).token !== null) {
    const hold = await locks.acquire(LOCK)
    await unit(async () => {
      if (!guarded) {
        const seen = Number((await register.get())?.value ?? 0)
        await stumble()
        return await register.put(seen + 1)
      }
      await guard.with(unaware(hold), async (tx) => {
        const seen = Number((await tx.get()) ?? 0)
        await stumble()
        await tx.put(seen + 1)
      })
    })
    await hold.release()
  }
  await locks.close()
}

await (store === 'register' ? underTheService() : underParentsLock())
process.disconnect()
