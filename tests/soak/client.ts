import { setTimeout as sleep } from 'node:timers/promises'
import { getEventListeners } from 'node:events'
import { createLocks, type Hold, LeaseholdError, type Locks } from 'leasehold'

/** What one client has met. Counts by what happened. */
export type Tally = Map<string, number>

export interface ClientPlan {
  readonly url: string
  readonly number: number
  readonly acquires: number
  readonly names: number
  readonly random: () => number
  /** How the client speaks to the service. */
  readonly kind: 'stream' | 'worker' | 'http'
  readonly tally: Tally
  /** Token of the last exclusive grant by name: each later one has to be greater. */
  readonly tokens: Map<string, bigint>
  readonly problems: string[]
}

/** Errors that a cut connection or an abort may lead to. All others are problems. */
const EXPECTED = new Set(['aborted', 'busy', 'lost', 'unreachable', 'unknown-outcome', 'timeout'])
const HOLD_MAX_MS = 4

function count(tally: Tally, what: string): void {
  tally.set(what, (tally.get(what) ?? 0) + 1)
}

/** One client's life: `acquires` times a lock in one of the ways there are, then the end. */
export async function liveOneClient(plan: ClientPlan): Promise<void> {
  const { url, number, acquires, tally, problems } = plan
  const locks = createLocks(url, {
    ttl: '15s',
    wait: '10m',
    connectTimeout: '60s',
    clientName: `soak ${number}`,
    ...(plan.kind === 'worker' ? { keepAlive: 'worker' } : {}),
    ...(plan.kind === 'http' ? { transport: 'http' } : {}),
  })
  const controller = new AbortController()
  try {
    for (let turn = 0; turn < acquires; turn++) {
      try {
        await acquireOnce(plan, locks, controller.signal)
      } catch (error) {
        const code = error instanceof LeaseholdError ? error.code : 'untyped'
        count(tally, `error ${code}`)
        if (!EXPECTED.has(code)) problems.push(`client ${number}: ${String(error)}`)
      }
    }
    const left = getEventListeners(controller.signal, 'abort').length
    if (left > 0) problems.push(`client ${number}: ${left} listeners are left on its signal`)
  } finally {
    await locks.close({ drain: '1s' })
  }
}

async function acquireOnce(plan: ClientPlan, locks: Locks, signal: AbortSignal): Promise<void> {
  const { random, names, tally } = plan
  const name = `soak/${Math.floor(random() * names)}`
  const way = random()
  if (way < 0.1) return abortSome(plan, locks, name)
  if (way < 0.2) {
    const hold = await locks.tryAcquire(name)
    count(tally, hold ? 'tried' : 'tried in vain')
    return hold ? use(plan, hold) : undefined
  }
  if (way < 0.3) return use(plan, await locks.acquire(name, { mode: 'shared', signal }))
  if (way < 0.4) return use(plan, await locks.acquire(`${name}/permits`, { permits: 3, signal }))
  if (way < 0.5) return use(plan, await locks.acquire([name, `${name}/second`], { signal }))
  if (way < 0.6) return locks.request(name, { signal }, (hold) => check(plan, hold))
  return use(plan, await locks.acquire(name, { signal }))
}

/** An abort that races the grant. */
async function abortSome(plan: ClientPlan, locks: Locks, name: string): Promise<void> {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), plan.random() * 10)
  try {
    await use(plan, await locks.acquire(name, { signal: controller.signal }))
  } finally {
    clearTimeout(timer)
    const left = getEventListeners(controller.signal, 'abort').length
    if (left > 0) plan.problems.push(`client ${plan.number}: ${left} listeners are left on an aborted signal`)
  }
}

async function use(plan: ClientPlan, hold: Hold): Promise<void> {
  try {
    await check(plan, hold)
  } finally {
    count(plan.tally, (await hold.release()).released ? 'released' : 'was lost')
  }
}

async function check(plan: ClientPlan, hold: Hold): Promise<void> {
  count(plan.tally, 'granted')
  for (const { name, mode, token } of hold.locks) {
    if (mode !== 'exclusive') continue
    const before = plan.tokens.get(name) ?? 0n
    if (token <= before) plan.problems.push(`${name}: token ${token} after ${before}`)
    plan.tokens.set(name, token)
  }
  await sleep(plan.random() * HOLD_MAX_MS)
}
