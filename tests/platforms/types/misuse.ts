// What the compiler must refuse: a line that it accepts is an error here.
import { fence } from '@leasehold/fence/pg'
import type { Hold, Locks } from 'leasehold'
import Redlock from 'leasehold/compat/redlock'
import { Mutex, Semaphore } from 'leasehold/compat/redis-semaphore'
import { webLocks } from 'leasehold/compat/web-locks'
import { Locked } from 'leasehold/nest'

export async function misuse(locks: Locks, hold: Hold): Promise<void> {
  // @ts-expect-error a duration is a text or a number
  await locks.acquire('a', { ttl: true })
  // @ts-expect-error an option that does not exist
  await locks.acquire('a', { tll: '10s' })
  // @ts-expect-error there is no upgradeable mode
  await locks.acquire('a', { mode: 'update' })
  // @ts-expect-error tryAcquire never waits
  await locks.tryAcquire('a', { wait: '5s' })
  // @ts-expect-error it may not have been granted
  await locks.request('a', { ifAvailable: true }, (granted) => granted.name)
  // @ts-expect-error the same of tryAcquire
  await (await locks.tryAcquire('a')).release()
  // @ts-expect-error a token is a bigint
  const token: number = hold.token
  // @ts-expect-error a hold cannot be changed
  hold.state = 'held'
  // @ts-expect-error stealing needs a reason
  await locks.steal('a')
  // @ts-expect-error a slot is a text
  await locks.once('a', { slot: 5 }, () => {})
  // @ts-expect-error versions are bigints
  await locks.register('a').put({}, { ifVersion: 7 })
  const pool = {} as Parameters<typeof fence>[0]
  // @ts-expect-error a guard takes a hold, not a token
  await fence(pool).with(hold.token, async () => {})
  // @ts-expect-error a client of Redis is no client of ours
  new Redlock([{ evalsha() {} }])
  // @ts-expect-error a setting that does not exist
  new Redlock([locks], { retries: 5 })
  // @ts-expect-error the limit is a number
  new Semaphore(locks, 'a', '5')
  // @ts-expect-error it is only there while it is held
  new Mutex(locks, 'a').token.toString()
  // @ts-expect-error the lock may be null
  await webLocks(locks).request('a', { ifAvailable: true }, (lock) => lock.name)
  // @ts-expect-error names are texts
  Locked(5)
  console.log(token)
}
