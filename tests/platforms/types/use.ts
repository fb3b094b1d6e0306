// What users write. Compiled against the packed packages under several compilers and kinds of resolution.
import { addObserver, createLocksOn, type Engine } from '@leasehold/client'
import { fence } from '@leasehold/fence/pg'
import { connect, createLocks, type Hold, HoldLostError, type Locks, parseToken, StaleTokenError } from 'leasehold'
import Redlock, { ExecutionError, type Lock } from 'leasehold/compat/redlock'
import { Mutex, Semaphore } from 'leasehold/compat/redis-semaphore'
import { type LockManager, webLocks } from 'leasehold/compat/web-locks'
import { withHold as inFastify } from 'leasehold/fastify'
import { withHold as inHono } from 'leasehold/hono'
import { currentHold, LeaseholdModule, Locked } from 'leasehold/nest'

export async function holds(): Promise<void> {
  const locks: Locks = createLocks('http://127.0.0.1:4100', { ttl: '10s', wait: 5000 })
  await using other = await connect('memory:x')
  const total: number = await locks.request('a', async (hold) => Number(hold.token % 7n))
  const maybe: string | null = await locks.request('a', { ifAvailable: true }, (hold) => (hold ? hold.name : null))
  await using hold = await other.acquire(['a', { name: 'b', mode: 'shared' }, { name: 'c', permits: 3 }])
  const free: Hold | null = await locks.tryAcquire('x')
  const token: bigint = hold.tokenOf('a')
  const slot: number | undefined = hold.slotOf('c')
  const lost: HoldLostError | null = await hold.lost
  for await (const event of locks.watch({ prefix: 'a' })) {
    if (event.kind === 'freed') console.log(event.reason.length, event.cursor)
  }
  const register = locks.register('config')
  await register.put({ on: true }, { fence: hold })
  const ran: { ran: false } | { ran: true; value: number } = await locks.once('report', { slot: 'x' }, () => 5)
  if (ran.ran) console.log(ran.value.toFixed())
  const error: unknown = null
  if (error instanceof StaleTokenError) console.log(error.token > parseToken('5'), error.mark)
  console.log(total, maybe, free, token, slot, lost?.reason, hold.state === 'held')
}

export async function guards(hold: Hold): Promise<string> {
  const pool = { connect: async () => ({ query: async () => ({ rows: [] }), release() {} }) }
  return fence(pool as never).with(hold, async (tx) => String(tx))
}

export async function shims(locks: Locks): Promise<void> {
  const redlock = new Redlock([locks], { retryCount: -1 })
  let lock: Lock = await redlock.acquire(['a'], 5000)
  lock = await lock.extend(5000)
  await lock.release()
  const five: number = await redlock.using(['a'], 5000, async (signal, hold) => {
    if (signal.aborted) throw signal.error ?? new ExecutionError('lost', hold.name)
    return 5
  })
  const mutex = new Mutex(locks, 'key', { lockTimeout: 1000 })
  if (await mutex.tryAcquire()) console.log(mutex.isAcquired, five)
  const slot: number | undefined = new Semaphore(locks, 'key', 5).slot
  const manager: LockManager = webLocks(locks)
  const name: string = await manager.request('r', { mode: 'shared' }, (granted) => granted.name)
  const none: string | undefined = await manager.request('r', { ifAvailable: true }, (granted) => granted?.name)
  console.log(slot, name, none)
}

export function frameworks(locks: Locks) {
  const fastify = inFastify(
    { locks, name: (request: { params: { id: string } }) => request.params.id },
    (_request, _reply, hold) => hold.id,
  )
  const hono = inHono(
    { locks, name: 'a', wait: '2s' },
    (_context: { req: { raw: Request } }, hold) => new Response(hold.name),
  )
  class Invoices {
    readonly locks = locks
    async pay(id: string): Promise<string> {
      return `${currentHold().name} ${id}`
    }
  }
  const decorate = Locked((id: string) => `invoice/${id}`, { wait: '5s' })
  const descriptor: PropertyDescriptor = decorate(Invoices.prototype, 'pay', { value: Invoices.prototype.pay })
  return { fastify, hono, descriptor, module: LeaseholdModule.forRoot({ url: 'memory:x', drain: '5s' }) }
}

export function below(engine: Engine): Locks {
  addObserver({
    wants: (kind) => kind === 'hold',
    begin:
      () =>
      ({ error }) =>
        console.log(error),
  })
  return createLocksOn(engine, { ttl: '10s' })
}
