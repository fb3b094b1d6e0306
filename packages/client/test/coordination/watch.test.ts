import { EpochChangedError, InvalidError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { WatchEvent } from '../../src/index.js'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

describe('watch', () => {
  async function collect(
    work: () => Promise<void>,
    options: { prefix?: string; from?: string } = {},
  ): Promise<WatchEvent[]> {
    const locks = service.client()
    const controller = new AbortController()
    const events: WatchEvent[] = []
    const watching = (async () => {
      for await (const event of locks.watch({ ...options, signal: controller.signal })) events.push(event)
    })()
    await service.platform.advance(50)
    await work()
    await service.platform.advance(5_000)
    controller.abort()
    await service.during(watching)
    return events
  }

  it('shows holds as they come and go', async () => {
    const locks = service.client()
    const events = await collect(
      async () => {
        await service.during(locks.request('a/b', () => {}))
        await service.during(locks.request('c', () => {}))
      },
      { prefix: 'a' },
    )
    expect(events.map((event) => event.kind)).toEqual(['held', 'freed'])
  })

  it('has no gap and no repeat over reconnects, wherever the connection breaks', async () => {
    const locks = service.client({}, { network: service.line() })
    const events = await collect(
      async () => {
        for (let i = 0; i < 20; i++) {
          await service.during(locks.register('r').put(i))
          service.network.cutAfter = service.network.toServer + service.network.toClient + (i % 7)
          await service.platform.advance(20)
        }
      },
      { prefix: 'r' },
    )
    expect(events).toHaveLength(20)
    const versions = events.map((event) => (event.kind === 'put' ? event.version : -1n))
    expect([...versions].sort((a, b) => Number(a - b))).toEqual(versions)
  })

  it('continues from a cursor', async () => {
    const locks = service.client()
    const { at } = await service.during(locks.query())
    await service.during(locks.request('a', () => {}))
    const events = await collect(async () => {}, { from: at, prefix: 'a' })
    expect(events.map((event) => event.kind)).toEqual(['held', 'freed'])
    const rest = await collect(async () => {}, { from: events[0]?.cursor ?? '', prefix: 'a' })
    expect(rest.map((event) => event.kind)).toEqual(['freed'])
  })

  it('rejects an invalid cursor', async () => {
    const locks = service.client()
    await expect(locks.watch({ from: 'yesterday' }).next()).rejects.toBeInstanceOf(InvalidError)
  })

  it('ends with epoch-changed after a restore', async () => {
    const locks = service.client()
    const controller = new AbortController()
    const watching = (async () => {
      for await (const _ of locks.watch({ signal: controller.signal })) continue
    })().catch((error: unknown) => error)
    await service.platform.advance(50)
    service.member.restore(2)
    service.network.cutAll()
    expect(await service.during(watching)).toBeInstanceOf(EpochChangedError)
  })
})

describe('long watches', () => {
  it('an observer and a register watch survive outages and restores, and yield what they have missed', async () => {
    const line = service.line()
    const [boss, watcher] = [service.client(), service.client({ connectTimeout: '1s' }, { network: line })]
    const first = await service.during(boss.election('boss').campaign({ value: 'one' }))
    const controller = new AbortController()
    const { signal } = controller
    const leaders: (string | undefined)[] = []
    const values: unknown[] = []
    const observing = (async () => {
      for await (const leader of watcher.election('boss').observe({ signal })) leaders.push(leader?.value)
    })()
    const watching = (async () => {
      for await (const entry of watcher.register('flag').watch({ signal })) values.push(entry?.value)
    })()
    await service.platform.advance(50)
    expect([leaders, values]).toEqual([['one'], [undefined]])
    service.member.restore(2)
    service.member.refuse = 'no-quorum'
    service.network.cutAll()
    line.cutAll()
    await service.platform.advance(10_000)
    service.member.refuse = undefined
    await service.platform.advance(5_000)
    expect(first.state).toBe('lost')
    await service.during(boss.register('flag').put(1))
    await service.during(boss.election('boss').campaign({ value: 'two' }))
    await service.platform.advance(1_000)
    expect(leaders[0]).toBe('one')
    expect(leaders.slice(-1)).toEqual(['two'])
    expect(values).toEqual([undefined, 1])
    controller.abort()
    await service.during(Promise.all([observing, watching]))
  })
})
