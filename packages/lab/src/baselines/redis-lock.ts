import type { HeldBy, LockClient, LockSystem } from '../scenarios/system.js'
import { type Process, RpcClient, type World } from '../world/index.js'
import { type Fsync, REDIS_PORT, type RedisAnswer, RedisNode } from './redis-node.js'
import { guardableOf } from './tokens.js'

/** `{ "kind": "redis", … }`: one primary `P`, and perhaps a replica `Q`; times are seconds. */
export interface RedisLockSpec {
  readonly replica?: boolean
  readonly fsync?: Fsync
  readonly ttl?: number
  /** How the lock is released: plain `DEL`, or only if the value is still one's own. Default `compare-and-delete`. */
  readonly release?: 'del' | 'compare-and-delete'
  /** From when the client counts its lease: when it asked (default), or when the answer came. */
  readonly deadline?: 'send' | 'receipt'
  /** A counter beside the lock, incremented in the script that sets it; its value at the beginning. */
  readonly counter?: number
  /** Sold as what it is: an approximate lock, that only saves work. */
  readonly approximate?: boolean
}

const SECOND = 1_000_000
const MS = 1000
const ANSWER_WAIT_US = 30 * SECOND
const RETRY_US = 50 * MS

/**
 * One Redis: `SET key value NX PX ttl`, the lock of the Redis manual for a single instance. Actions: `failover` (the
 * replica becomes the primary), `evict` with `key` (the primary is out of memory).
 */
export function redisLock(world: World, spec: RedisLockSpec): LockSystem {
  const names = spec.replica === true ? ['P', 'Q'] : ['P']
  const common = {
    fsync: spec.fsync ?? 'everysec',
    ...(spec.counter === undefined ? {} : { initial: { 'L:token': String(spec.counter) } }),
  }
  const nodes = new Map(
    names.map((name) => {
      const replica = name === 'P' && spec.replica === true ? { replica: 'Q' } : {}
      return [name, new RedisNode(world, name, { ...common, ...replica })]
    }),
  )
  let primary = 'P'
  return {
    members: names,
    overlapViolates: spec.approximate !== true,
    approximate: spec.approximate === true,
    client: (process) => new RedisClient(process, () => primary, spec),
    start: (name) => nodes.get(name)?.start(),
    actions: {
      failover: () => {
        primary = 'Q'
        world.timeline.add({ kind: 'fault', who: 'Q', text: 'the replica is made the primary' })
      },
      evict: ({ key }) => nodes.get(primary)?.evict(key),
    },
  }
}

class RedisClient implements LockClient {
  readonly #process: Process
  readonly #primary: () => string
  readonly #spec: RedisLockSpec
  readonly #rpc: RpcClient

  constructor(process: Process, primary: () => string, spec: RedisLockSpec) {
    this.#process = process
    this.#primary = primary
    this.#spec = spec
    this.#rpc = RpcClient.of(process)
  }

  /** `wait`: seconds for which it asks again and again; default: once. */
  async acquire(lock: string, options: Readonly<Record<string, unknown>>): Promise<HeldBy | undefined> {
    const endUs = this.#nowUs() + Number(options.wait ?? 0) * SECOND
    for (;;) {
      const held = await this.#attempt(lock)
      if (held !== undefined || this.#nowUs() >= endUs) return held
      await this.#process.sleep(RETRY_US)
    }
  }

  async #attempt(lock: string): Promise<HeldBy | undefined> {
    const { counter, deadline, release, ttl = 10 } = this.#spec
    const value = String(this.#process.random('redis.value').next())
    const sentUs = this.#nowUs()
    const incr = counter === undefined ? {} : { incr: `${lock}:token` }
    const text = counter === undefined ? 'SET NX PX' : 'SET NX PX, INCR'
    const to = () => ({ machine: this.#primary(), port: REDIS_PORT })
    const command = { do: 'set', key: lock, value, ttlMs: ttl * MS, ...incr }
    const answer = await this.#rpc.ask<RedisAnswer>(to(), command, ANSWER_WAIT_US, { text })
    if (answer?.ok !== true) return undefined
    const token = answer.counter === undefined ? undefined : BigInt(answer.counter)
    const validUntilUs = (deadline === 'receipt' ? this.#nowUs() : sentUs) + ttl * SECOND
    return {
      token,
      guardable: guardableOf(lock, token),
      isValid: () => this.#nowUs() < validUntilUs,
      release: async () => {
        const condition = release === 'del' ? {} : { ifValue: value }
        const give = { do: 'delete', key: lock, ...condition }
        await this.#rpc.ask(to(), give, ANSWER_WAIT_US, { text: release === 'del' ? 'DEL' : 'compare and delete' })
      },
    }
  }

  #nowUs(): number {
    return this.#process.machine.clockUs('monotonic')
  }
}
