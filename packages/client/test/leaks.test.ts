import { getEventListeners } from 'node:events'
import type { LeaseholdError } from '@leasehold/core'
import { expect, it } from 'vitest'
import type { AcquireCallOptions, Locks } from '../src/index.js'
import type { TestService } from './support/service.js'
import { suite } from './support/suite.js'

const at = suite()

interface Way {
  readonly service: TestService
  readonly locks: Locks
  /** Another client with a line of its own. */
  readonly other: Locks
  readonly signal: AbortSignal
  readonly abort: () => void
}

/** Every path to an error, by its code. What it leaves behind is counted afterwards. */
const WAYS: readonly (readonly [code: string, what: string, go: (way: Way) => Promise<unknown>])[] = [
  [
    'busy',
    'wait: 0',
    async ({ locks, other, service, signal }) => {
      await service.during(other.acquire('a'))
      return service.during(locks.acquire('a', { wait: 0, signal }))
    },
  ],
  [
    'timeout',
    'a wait that ends',
    async ({ locks, other, service, signal }) => {
      await service.during(other.acquire('a'))
      return service.during(locks.acquire('a', { wait: '1s', signal }))
    },
  ],
  [
    'aborted',
    'before it is sent',
    ({ locks, service, signal, abort }) => {
      abort()
      return service.during(locks.acquire('a', { signal }))
    },
  ],
  [
    'aborted',
    'while it waits',
    async ({ locks, other, service, signal, abort }) => {
      await service.during(other.acquire('a'))
      const waiting = locks.acquire('a', { signal })
      waiting.catch(() => {})
      await service.platform.advance(50)
      abort()
      return service.during(waiting)
    },
  ],
  [
    'aborted',
    'the client is closed while it waits',
    async ({ locks, other, service, signal }) => {
      await service.during(other.acquire('a'))
      const waiting = locks.acquire('a', { signal })
      waiting.catch(() => {})
      await service.platform.advance(50)
      await service.during(locks.close())
      return waiting
    },
  ],
  [
    'unreachable',
    'no listener',
    ({ locks, service, signal }) => {
      service.network.down.add(service.url)
      return service.during(locks.acquire('a', { signal }))
    },
  ],
  [
    'unreachable',
    'no answer',
    ({ locks, service, signal }) => {
      service.network.blackHole = true
      return service.during(locks.acquire('a', { signal }))
    },
  ],
  [
    'no-quorum',
    'no leader',
    ({ locks, service, signal }) => {
      service.member.refuse = 'no-quorum'
      return service.during(locks.acquire('a', { signal }))
    },
  ],
  ['invalid', 'a wrong option', ({ locks, signal }) => locks.acquire('a', { signal, ttl: 30 })],
  [
    'mismatch',
    'another size of a semaphore',
    async ({ locks, other, service, signal }) => {
      await service.during(other.acquire('a', { permits: 2 }))
      return service.during(locks.acquire('a', { permits: 3, signal }))
    },
  ],
  [
    'lost',
    'the deadline passes',
    async ({ locks, service, signal }) => {
      return lost(service, locks, { signal }, async () => {
        service.network.blackHole = true
        await service.platform.advance(12_000)
      })
    },
  ],
  [
    'lost',
    'it is stolen',
    ({ locks, other, service, signal }) => {
      return lost(service, locks, { signal }, async () => {
        await service.during(other.steal('a', { reason: 'test' }))
      })
    },
  ],
  [
    'lost',
    'maxHold',
    ({ locks, service, signal }) => {
      return lost(service, locks, { signal, maxHold: '2s' }, () => service.platform.advance(3_000))
    },
  ],
  [
    'lost',
    'the service is restored',
    ({ locks, service, signal }) => {
      return lost(service, locks, { signal }, async () => {
        service.member.restore(2)
        service.network.cutAll()
        await service.platform.advance(100)
      })
    },
  ],
  [
    'lost',
    'its client is closed',
    ({ locks, service, signal }) => {
      return lost(service, locks, { signal }, () => service.during(locks.close()))
    },
  ],
  [
    'not-holder',
    'an adoption that comes too late',
    async ({ locks, other, service }) => {
      const hold = await service.during(locks.acquire('a', { portable: true }))
      const text = hold.serialize()
      await service.during(hold.release())
      return service.during(other.adopt(text))
    },
  ],
  [
    'version-conflict',
    'a wrong version',
    async ({ locks, service }) => {
      await service.during(locks.register('r').put(1))
      return service.during(locks.register('r').put(2, { ifVersion: 0n }))
    },
  ],
  [
    'unknown-outcome',
    'a write without an answer',
    async ({ locks, service }) => {
      await service.during(locks.acquire('b'))
      const writing = locks.register('r').put(1)
      writing.catch(() => {})
      service.network.blackHole = true
      return service.during(writing)
    },
  ],
  [
    'epoch-changed',
    'a watch after a restore',
    async ({ locks, service, signal }) => {
      const events = locks.watch({ signal })
      const next = events.next()
      next.catch(() => {})
      await service.platform.advance(50)
      service.member.restore(2)
      service.network.cutAll()
      return service.during(next)
    },
  ],
  [
    'untyped',
    'the body throws',
    ({ locks, service, signal }) => {
      return service.during(locks.request('a', { signal }, () => Promise.reject(new Error('mine'))))
    },
  ],
  [
    'untyped',
    'a campaign throws',
    ({ locks, service, signal }) => {
      return service.during(locks.election('a').campaign({ signal }, () => Promise.reject(new Error('mine'))))
    },
  ],
]

async function lost(
  service: TestService,
  locks: Locks,
  options: AcquireCallOptions,
  end: () => Promise<unknown>,
): Promise<unknown> {
  let finish: () => void = () => {}
  const work = locks.request(
    'a',
    { ...options, ifAvailable: false },
    () => new Promise<void>((done) => (finish = done)),
  )
  work.catch(() => {})
  await service.platform.advance(50)
  await end()
  finish()
  return service.during(work)
}

it.each(WAYS)('%s, %s: nothing is left over', async (code, _, go) => {
  const { service } = at
  const controller = new AbortController()
  const locks = service.client({ ttl: '10s', connectTimeout: '2s' })
  const other = service.client({}, { network: service.line() })
  const way = { service, locks, other, signal: controller.signal, abort: () => controller.abort() }
  const error: unknown = await go(way).catch((thrown: unknown) => thrown)
  expect((error as LeaseholdError)?.code ?? 'untyped').toBe(code)
  expect(error).toBeInstanceOf(Error)
  service.network.blackHole = false
  service.network.down.clear()
  service.member.refuse = undefined
  service.network.cutAll()
  await service.platform.advance(1_000)
  await service.during(Promise.all([locks.close(), other.close()]))
  // What was given up without a word ends by its TTL.
  await service.platform.advance(11_000)
  const { sessions, holds, waiters } = service.member.state.machine
  expect([sessions.size, holds.size, waiters.size]).toEqual([0, 0, 0])
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
})

it('a dedicated session that is closing when its client closes leaves no timer', async () => {
  const { service } = at
  const [network, other] = [service.line(), service.client()]
  const locks = service.client({ ttl: '30s' }, { network })
  await service.during(other.acquire('a'))
  const controller = new AbortController()
  const waiting = locks.acquire('a', { maxHold: '1s', signal: controller.signal })
  waiting.catch(() => {})
  await service.platform.advance(50)
  expect(service.member.state.machine.sessions.size).toBe(2)
  network.holdBack = true
  controller.abort()
  await expect(service.during(waiting)).rejects.toMatchObject({ code: 'aborted' })
  await service.during(locks.close())
  expect(network.open.size).toBe(0)
})
