import { describe, expect, it } from 'vitest'
import { type Fsync, RedisNode, type RedisNodeOptions } from '../../src/baselines/index.js'
import { RpcClient, World } from '../../src/world/index.js'

const SECOND = 1_000_000

/** One node and somebody who asks it. Answers come as the world runs. */
function node(options: Partial<RedisNodeOptions> & { fsync: Fsync }) {
  const world = new World({ seed: 1 })
  const redis = new RedisNode(world, 'P', options)
  const client = world.machine('C').spawn({ promises: true })
  const rpc = RpcClient.of(client)
  const ask = async (command: object): Promise<unknown> => {
    const answer = rpc.ask({ machine: 'P', port: 'redis' }, command, SECOND)
    await world.run(world.nowUs + 20_000)
    return answer
  }
  const set = (value: string, ttlMs = 10_000, more: object = {}) => ask({ do: 'set', key: 'L', value, ttlMs, ...more })
  return { world, redis, ask, set, until: (seconds: number) => world.run(seconds * SECOND) }
}

describe('a node of Redis', () => {
  it('sets only what is not there, and lets it expire by its wall clock', async () => {
    const { redis, set, until } = node({ fsync: 'no' })
    await until(1)
    expect(await set('a')).toEqual({ ok: true })
    expect(await set('b')).toEqual({ ok: false })
    redis.machine.step('wall', 9 * SECOND)
    expect(await set('b')).toEqual({ ok: false })
    redis.machine.step('wall', SECOND)
    expect(await set('b')).toEqual({ ok: true })
  })

  it('does not count a jump of the monotonic clock, and keeps a key longer when its wall clock goes back', async () => {
    const { redis, set, until } = node({ fsync: 'no' })
    await until(1)
    await set('a')
    redis.machine.step('monotonic', 60 * SECOND)
    expect(await set('b')).toEqual({ ok: false })
    redis.machine.step('wall', -30 * SECOND)
    await until(39)
    expect(await set('b')).toEqual({ ok: false })
    await until(42)
    expect(await set('b')).toEqual({ ok: true })
  })

  it('deletes by comparison, or without', async () => {
    const { ask, set, until } = node({ fsync: 'no' })
    await until(1)
    await set('a')
    expect(await ask({ do: 'delete', key: 'L', ifValue: 'b' })).toEqual({ ok: false })
    expect(await ask({ do: 'delete', key: 'L', ifValue: 'a' })).toEqual({ ok: true })
    await set('c')
    expect(await ask({ do: 'delete', key: 'L' })).toEqual({ ok: true })
  })

  it('counts in the script that sets, and forgets an evicted counter', async () => {
    const { redis, ask, set, until } = node({ fsync: 'no', initial: { n: '6' } })
    await until(1)
    expect(await set('a', 10_000, { incr: 'n' })).toEqual({ ok: true, counter: 7 })
    await ask({ do: 'delete', key: 'L' })
    redis.evict('n')
    expect(await set('a', 10_000, { incr: 'n' })).toEqual({ ok: true, counter: 1 })
  })

  it.each([
    ['always', 'power', false],
    ['everysec', 'power', true],
    ['no', 'power', true],
    ['everysec', 'kill', false],
    ['none', 'kill', true],
  ] as const)(
    'with fsync %s and a %s failure right after the answer, the key is lost: %s',
    async (fsync, how, isLost) => {
      const { redis, set, until } = node({ fsync })
      await until(1.6)
      await set('a')
      if (how === 'power') redis.machine.powerOff()
      else redis.process.kill()
      redis.start()
      await until(2)
      expect(await set('b')).toEqual({ ok: isLost })
    },
  )

  it('has everything of a second ago on disk with everysec', async () => {
    const { redis, set, until } = node({ fsync: 'everysec' })
    await until(1)
    await set('a')
    await until(2.6)
    redis.machine.powerOff()
    redis.start()
    await until(3)
    expect(await set('b')).toEqual({ ok: false })
  })

  it('stays away after a restart as long as its clock says', async () => {
    const honest = node({ fsync: 'no', startDelay: { us: 5 * SECOND, clock: 'boot' } })
    const fooled = node({ fsync: 'no', startDelay: { us: 5 * SECOND, clock: 'wall' } })
    for (const { redis, until } of [honest, fooled]) {
      await until(1)
      redis.machine.powerOff()
      redis.machine.step('wall', 20 * SECOND)
      redis.start()
      await until(2)
    }
    expect(await fooled.set('a')).toEqual({ ok: true })
    const late = honest.set('a')
    await honest.until(4)
    expect(await late).toBeUndefined()
    await honest.until(6.5)
    expect(await honest.set('a')).toEqual({ ok: true })
  })
})
