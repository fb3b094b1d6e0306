import type { UnavailableError } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { type Connector, type Locks, ProtocolEngine } from '../../src/index.js'
import { TestService } from '../support/service.js'

type Scenario = (locks: Locks, other: Locks, service: TestService) => Promise<unknown>

/** Everything that a client does, once, with what it got. */
const everything: Scenario = async (locks, other) => {
  const got: unknown[] = []
  const total = await locks.request('one', () => 7)
  const both = await locks.acquire(['two', { name: 'three', mode: 'shared' }])
  const waiting = other.acquire('two', { wait: '60s' })
  const register = locks.register('r')
  await register.put({ n: 1 }, { ifVersion: 0n })
  await register.put({ n: 2 }, { fence: both, ifVersion: (await register.get())?.version ?? 0n })
  got.push(total, both.state, (await register.get())?.value)
  got.push(await both.release())
  const theirs = await waiting
  const mine = locks.acquire('two', { wait: '60s' })
  got.push(await locks.tryAcquire('two'), await theirs.release())
  const portable = await locks.acquire('four', { portable: true })
  const moved = await other.adopt(portable.serialize())
  got.push(await moved.release(), await (await mine).release())
  const permits = await Promise.all([1, 2].map(() => locks.acquire('gpu', { permits: 2 })))
  got.push(permits.map((permit) => permit.slot).sort(), await Promise.all(permits.map((permit) => permit.release())))
  await other.acquire('five')
  got.push(await locks.steal('five', { reason: 'x' }))
  await register.delete({ fence: await locks.acquire('two') })
  got.push(await register.get(), (await locks.query()).held.length)
  return got
}

interface Outcome {
  readonly got: unknown
  readonly events: readonly string[]
  readonly messages: number
}

/** Runs the scenario with the client's connection cut once, after `cutAfter` messages in either direction. */
async function run(scenario: Scenario, cutAfter: number): Promise<Outcome> {
  const service = new TestService()
  const line = service.line()
  const locks = service.client({}, { network: line })
  const other = service.client()
  line.cutAfter = cutAfter
  const got = await service.during(scenario(locks, other, service))
  const messages = line.toServer + line.toClient
  const at = { epoch: 1, index: 0 as never, ordinal: 0 }
  const events = (service.member.history(at) ?? []).map(({ event }) => describeEvent(event))
  const left = await service.end()
  expect(left).toEqual({ timers: 0, connections: 0, sessions: 0 })
  expect(service.member.state.machine.holds.size).toBe(0)
  expect(service.member.state.machine.waiters.size).toBe(0)
  return { got, events, messages }
}

function describeEvent(event: { kind: string }): string {
  const { kind, grant, locks, names, key, reason } = event as Record<string, unknown> & { kind: string }
  const list = (grant as { locks?: { name: string }[] })?.locks ?? (locks as { name: string }[] | undefined)
  return [
    kind,
    list?.map((lock) => lock.name).join('+') ?? (names as string[])?.join('+') ?? key ?? '',
    reason ?? '',
  ].join(' ')
}

const counted = (events: readonly string[]) => {
  const counts = new Map<string, number>()
  // Order between the two clients depends on the cut; whether one had to wait does too. Effects must not.
  for (const event of events) {
    if (!/^(un)?queued/.test(event)) counts.set(event, (counts.get(event) ?? 0) + 1)
  }
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}

describe('a connection that breaks', () => {
  it('at any message changes no outcome and doubles no effect', async () => {
    const reference = await run(everything, Number.POSITIVE_INFINITY)
    expect(reference.messages).toBeGreaterThan(40)
    for (let n = 1; n <= reference.messages; n++) {
      const outcome = await run(everything, n)
      expect({ n, got: outcome.got }).toEqual({ n, got: reference.got })
      expect({ n, events: counted(outcome.events) }).toEqual({ n, events: counted(reference.events) })
    }
  }, 240_000)

  it('at any message leaves a persistent hold confirmed before the caller has it', async () => {
    for (let n = 1; n <= 28; n++) {
      const service = new TestService()
      const line = service.line()
      const locks = service.client({}, { network: line })
      const { holds } = service.member.state.machine
      // Cut at once, or silent for a while before that: then what is sent meanwhile is lost as well.
      if (n <= 14) line.cutAfter = n
      else line.loseAfter = n - 14
      line.onLost = () => void service.platform.after(300, () => line.cutAll())
      // A waiter in front keeps its request number open, so that the grant is acknowledged one by one.
      await service.during(service.client().acquire('busy'))
      void locks.acquire('busy').catch(() => {})
      const hold = await service.during(locks.acquire('a', { persistent: true }))
      expect({ n, confirmed: [...holds.values()].find((one) => one.terms.persistent)?.terms.confirmed }).toEqual({
        n,
        confirmed: true,
      })
      await service.during(hold.release())
      expect(await service.end()).toEqual({ timers: 0, connections: 0, sessions: 0 })
    }
  })

  it('at any message of the release of a persistent hold whose session has ended lets it be released once', async () => {
    for (let n = 1; n <= 8; n++) {
      const service = new TestService()
      const line = service.line()
      const locks = service.client({}, { network: line })
      const hold = await service.during(locks.acquire('a', { persistent: true }))
      service.network.down.add(service.url)
      line.down.add(service.url)
      line.cutAll()
      await service.platform.advance(30_000)
      service.network.down.clear()
      line.down.clear()
      line.cutAfter = line.toServer + line.toClient + n
      expect({ n, outcome: await service.during(hold.release()), state: hold.state }).toEqual({
        n,
        outcome: { released: true },
        state: 'released',
      })
      await service.end()
    }
  })

  it('repeatedly leaves nothing behind', async () => {
    for (const every of [7, 11, 13, 29]) {
      const service = new TestService()
      const line = service.line()
      const locks = service.client({}, { network: line })
      const tasks = Array.from({ length: 10 }, async (_, task) => {
        for (let i = 0; i < 10; i++) {
          line.cutAfter = Math.min(line.cutAfter, line.toServer + line.toClient + every)
          await locks.request(`n${(task * i) % 4}`, () => {})
        }
      })
      await service.during(Promise.all(tasks))
      expect(service.member.state.machine.holds.size).toBe(0)
      expect(line.connects.length).toBeGreaterThan(10)
      expect(await service.end()).toEqual({ timers: 0, connections: 0, sessions: 0 })
    }
  }, 240_000)

  it('loses no end of a hold: a steal during the outage is reported after the reconnect', async () => {
    const service = new TestService()
    const line = service.line()
    const locks = service.client({ ttl: '60s' }, { network: line })
    const hold = await service.during(locks.acquire('a'))
    const kept = await service.during(locks.acquire('b'))
    line.down.add(service.url)
    line.cutAll()
    await service.during(service.client().steal('a', { reason: 'x' }))
    expect(hold.state).toBe('held')
    line.down.clear()
    await service.platform.advance(3_000)
    expect(await hold.lost).toMatchObject({ reason: 'stolen' })
    expect(kept.state).toBe('held')
    expect(await service.end()).toEqual({ timers: 0, connections: 0, sessions: 0 })
  })

  it('only looks open is replaced before a hold is lost', async () => {
    const service = new TestService()
    const line = service.line()
    const locks = service.client({ ttl: '10s' }, { network: line })
    const hold = await service.during(locks.acquire('a'))
    line.freeze()
    await service.platform.advance(30_000)
    expect(line.connects).toHaveLength(2)
    expect(hold.state).toBe('held')
    await service.end()
  })

  it('only looks open is detected also when nothing is held', async () => {
    const service = new TestService()
    const line = service.line()
    const locks = service.client({}, { network: line })
    await service.during(locks.connect())
    await service.platform.advance(60_000)
    expect(line.connects).toHaveLength(1)
    line.freeze()
    await service.platform.advance(30_000)
    expect(line.connects).toHaveLength(2)
    await service.end()
  })
})

describe('several members', () => {
  function members(count: number) {
    const service = new TestService()
    const urls = Array.from({ length: count }, (_, i) => `http://m${i}`)
    for (const url of urls) service.network.hubs.set(url, service.hub)
    return { service, urls }
  }

  it('the next URL is tried when one does not answer', async () => {
    const { service, urls } = members(3)
    service.network.down.add('http://m0')
    service.network.down.add('http://m1')
    const locks = service.client({}, { urls })
    expect((await service.during(locks.acquire('a'))).state).toBe('held')
    expect(service.network.connects).toEqual(urls)
    await service.end()
  })

  it('a member that does not lead sends its clients to the leader', async () => {
    const leader = new TestService()
    const follower = new TestService()
    leader.network.hubs.set('http://follower', follower.hub)
    follower.member.role = 'follower'
    follower.member.leaderUrl = leader.url
    const locks = leader.client({}, { urls: ['http://follower'] })
    expect((await leader.during(locks.acquire('a'))).state).toBe('held')
    expect(leader.network.connects).toEqual(['http://follower', leader.url])
    expect(follower.member.log).toEqual([])
    await leader.end()
    await follower.end()
  })

  it('a wait that ends without a leader reports no-quorum', async () => {
    const { service, urls } = members(3)
    service.network.down.add('http://m0')
    service.network.down.add('http://m1')
    service.member.refuse = 'no-quorum'
    const locks = service.client({}, { urls })
    const acquiring = locks.acquire('a', { wait: '4s' }).catch((error: unknown) => error)
    await service.platform.advance(4_500)
    const error = (await acquiring) as UnavailableError
    expect(error).toMatchObject({ name: 'UnavailableError', code: 'no-quorum' })
    expect(error.message).toBe(
      'no session could be opened within the wait: the test lets this member refuse everything',
    )
    await service.end()
  })

  it('after the death of the leader the next one is found soon, and the dead one is not tried repeatedly', async () => {
    const next = new TestService()
    const dead = 'http://dead'
    const urls = [dead, next.url, 'http://other']
    next.network.hubs.set(dead, next.hub).set('http://other', next.hub)
    const locks = next.client({}, { urls })
    const hold = await next.during(locks.acquire('a'))
    expect(next.network.connects).toEqual([dead])
    // The others still name it, until one of them leads.
    next.member.role = 'follower'
    next.member.leaderUrl = dead
    next.network.down.add(dead)
    next.network.cutAll()
    const acquiring = locks.acquire('b')
    await next.platform.advance(2_000)
    const triedDead = next.network.connects.filter((url) => url === dead).length
    expect(triedDead).toBeLessThan(next.network.connects.length / 2)
    next.member.role = 'leader'
    next.member.leaderUrl = ''
    const elected = next.platform.monotonicMs()
    expect((await next.during(acquiring)).state).toBe('held')
    // Two pauses at most: one attempt may go to the dead one.
    expect(next.platform.monotonicMs() - elected).toBeLessThanOrEqual(900)
    expect(hold.state).toBe('held')
    await next.end()
  })

  it('a deposed leader refuses, and open requests are resent to the next one with the same number', async () => {
    const { service, urls } = members(2)
    const locks = service.client({ ttl: '60s' }, { urls })
    const hold = await service.during(locks.acquire('a'))
    service.member.refuse = 'no-quorum'
    const released = hold.release()
    await service.platform.advance(2_000)
    expect(new Set(service.network.connects).size).toBe(2)
    service.member.refuse = undefined
    expect(await service.during(released)).toEqual({ released: true })
    await service.end()
  })

  it('without a quorum the error is no-quorum, and connections are not retried in a tight loop', async () => {
    const service = new TestService()
    service.member.refuse = 'no-quorum'
    const locks = service.client({ connectTimeout: '5s' })
    await expect(service.during(locks.acquire('a'))).rejects.toMatchObject({ code: 'no-quorum', retryable: true })
    expect(service.network.connects.length).toBeLessThan(15)
    service.member.refuse = undefined
    await service.end()
  })
})

describe('unreachable members', () => {
  it.each(['first', 'last'])(
    'when the member that is left says that there is no quorum, the error says so (%s in the list)',
    async (place) => {
      const service = new TestService()
      service.member.refuse = 'no-quorum'
      const away = ['http://two', 'http://three']
      const urls = place === 'first' ? [service.url, ...away] : [...away, service.url]
      const locks = service.client({ connectTimeout: '2s' }, { urls })
      for (let i = 0; i < 5; i++) {
        await expect(service.during(locks.query())).rejects.toMatchObject({ code: 'no-quorum' })
      }
      service.member.refuse = undefined
      await service.end()
    },
  )
})

describe('epochs', () => {
  it('a raised epoch ends every hold: epoch-changed', async () => {
    const service = new TestService()
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    const persistent = await service.during(locks.acquire('b', { persistent: true }))
    service.member.restore(2)
    service.network.cutAll()
    await service.platform.advance(1_000)
    expect(await hold.lost).toMatchObject({ reason: 'epoch-changed' })
    expect(await persistent.lost).toMatchObject({ reason: 'epoch-changed' })
    const again = await service.during(locks.acquire('a'))
    expect(again.token).toBeGreaterThan(hold.token)
    await service.end()
  })

  it('a waiter queues again after a restore', async () => {
    const service = new TestService()
    const locks = service.client()
    await service.during(locks.acquire('a'))
    const waiting = locks.acquire('a', { wait: '60s' })
    await service.platform.advance(100)
    service.member.restore(2)
    service.network.cutAll()
    expect((await service.during(waiting)).state).toBe('held')
    await service.end()
  })

  it('a member of an older epoch is refused', async () => {
    const fresh = new TestService()
    const old = new TestService()
    fresh.member.restore(5)
    fresh.network.hubs.set('http://old', old.hub)
    const locks = fresh.client({ ttl: '60s' }, { urls: [fresh.url, 'http://old'] })
    const hold = await fresh.during(locks.acquire('a'))
    fresh.network.down.add(fresh.url)
    fresh.network.cutAll()
    await fresh.platform.advance(3_000)
    expect(fresh.network.connects).toContain('http://old')
    expect(old.member.log).toEqual([])
    expect(locks.status.state).toBe('connecting')
    fresh.network.down.clear()
    await fresh.platform.advance(5_000)
    expect(hold.state).toBe('held')
    await fresh.end()
    await old.end()
  })

  it('a member of an older epoch is refused also when it does not notice itself', async () => {
    const service = new TestService()
    service.member.restore(5)
    const { network } = service
    const welcome = {
      kind: 'welcome',
      version: 1,
      cluster: 'c1',
      epoch: 1,
      member: 'old',
      leaderUrl: '',
      urls: [],
    } as const
    const sent: string[] = []
    const connector: Connector = {
      connect(url, events) {
        if (url !== 'http://old') return network.connect(url, events)
        queueMicrotask(() => events.opened())
        return {
          buffered: 0,
          send: (messages) => {
            sent.push(...messages.map((message) => message.kind))
            queueMicrotask(() => events.received([welcome]))
          },
          close: () => {},
        }
      },
    }
    const { platform } = service
    const engine = new ProtocolEngine({ urls: [service.url, 'http://old'], connector, platform })
    await service.during(engine.connect(1_000))
    network.down.add(service.url)
    network.cutAll()
    await expect(service.during(engine.query({}, { stale: true, timeoutMs: 5_000 }))).rejects.toMatchObject({
      message: expect.stringContaining('older than 5'),
    })
    expect(new Set(sent)).toEqual(new Set(['hello']))
    await engine.close()
    await service.end()
  })

  it('another service under the same URL ends all sessions', async () => {
    const service = new TestService()
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    service.member.cluster = 'c2'
    service.network.cutAll()
    await service.platform.advance(1_000)
    expect(await hold.lost).toMatchObject({ reason: 'epoch-changed' })
    await service.end()
  })
})

describe('rights on a connection', () => {
  it('a session cannot be attached without its secret', async () => {
    const service = new TestService()
    const locks = service.client()
    await service.during(locks.acquire('a'))
    const [id] = [...service.member.state.machine.sessions.keys()]
    const answers: { kind: string; refused?: { code: string } }[] = []
    const stream = service.hub.open({ emit: (messages) => answers.push(...(messages as never[])), end: () => {} })
    stream.receive([{ kind: 'hello', version: 1, apiKey: '', client: '', epoch: 0 }])
    const session = id as never
    const ack = { lowest: 1, also: [] }
    stream.receive([
      { kind: 'command', correlation: 1, command: { kind: 'renew', session } },
      { kind: 'command', correlation: 2, command: { kind: 'closeSession', session, by: 'owner', reason: '' } },
      { kind: 'command', correlation: 3, command: { kind: 'release', session, request: 2, ack, hold: 2 as never } },
      { kind: 'command', correlation: 4, command: { kind: 'release', hold: 2 as never } },
      { kind: 'command', correlation: 5, command: { kind: 'put', key: 'r', value: new Uint8Array() } },
      { kind: 'command', correlation: 6, command: { kind: 'closeSession', session, by: 'death', reason: '' } },
      { kind: 'attach', correlation: 7, session, secret: 'f'.repeat(32) },
    ])
    await service.platform.advance(1)
    expect(answers.filter((answer) => answer.kind === 'error').map((answer) => answer.refused?.code)).toEqual([
      'forbidden',
      'forbidden',
      'forbidden',
      'forbidden',
      'invalid',
      'forbidden',
      'forbidden',
    ])
    stream.close()
    expect(service.member.state.machine.holds.size).toBe(1)
    await service.end()
  })
})
