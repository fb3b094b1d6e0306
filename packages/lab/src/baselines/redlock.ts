import type { HeldBy, LockClient, LockSystem } from '../scenarios/system.js'
import { type ClockName, type Process, RpcClient, type World } from '../world/index.js'
import { type Fsync, REDIS_PORT, type RedisAnswer, type RedisCommand, RedisNode } from './redis-node.js'

/** `{ "kind": "redlock", … }`; times are seconds. */
export interface RedlockSpec {
  readonly nodes?: number
  /** "auto-release time", step 2. Default 10. */
  readonly ttl?: number
  /** Timeout for one node, step 2. Default 0.05. */
  readonly nodeTimeout?: number
  /** `sequential` as step 2 says (default), or to all at once, as the page's part on retries recommends. */
  readonly send?: 'sequential' | 'parallel'
  /** Whether step 3 is done. Without it, a majority is enough and the validity counts from then. Default true. */
  readonly step3?: boolean
  /** The clock of steps 1 and 3. Default `monotonic`; `boot` counts a suspended machine, `wall` can be set. */
  readonly clock?: ClockName
  readonly fsync?: Fsync
  /** How long a node stays away after a restart, by which clock. */
  readonly startDelay?: number
  readonly startClock?: 'wall' | 'boot'
}

const MS = 1000
const SECOND = 1_000_000
/** The drift of the published implementations: 1 % of the TTL, and 2 ms for the precision of expiry in Redis. */
const DRIFT_PERCENT = 1
const DRIFT_FIXED_US = 2 * MS
/** Pause before another attempt: random, up to this. */
const RETRY_WITHIN_US = 200 * MS

/**
 * Redlock, after https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/ (The Redlock algorithm):
 * 1. note the time; 2. try `SET key random NX PX ttl` on all N nodes, each with a short timeout; 3. compute the elapsed time;
 * the lock is acquired iff a majority said OK and the elapsed time is less than the validity; 4. the validity left is
 * TTL − elapsed − drift; 5. otherwise unlock all nodes, also those that are believed not to have it.
 */
export function redlock(world: World, spec: RedlockSpec): LockSystem {
  const names = Array.from({ length: spec.nodes ?? 5 }, (_, i) => String.fromCharCode(65 + i))
  const startDelay =
    spec.startDelay === undefined
      ? {}
      : { startDelay: { us: spec.startDelay * SECOND, clock: spec.startClock ?? 'boot' } }
  const nodes = new Map(
    names.map((name) => [name, new RedisNode(world, name, { fsync: spec.fsync ?? 'everysec', ...startDelay })]),
  )
  return {
    members: names,
    overlapViolates: true,
    client: (process) => new RedlockClient(process, names, spec),
    start: (name) => nodes.get(name)?.start(),
    look: (name, lock) => nodes.get(name)?.look(lock),
  }
}

class RedlockClient implements LockClient {
  readonly #process: Process
  readonly #nodes: readonly string[]
  readonly #spec: RedlockSpec
  readonly #rpc: RpcClient
  readonly #ttlUs: number

  constructor(process: Process, nodes: readonly string[], spec: RedlockSpec) {
    this.#process = process
    this.#nodes = nodes
    this.#spec = spec
    this.#rpc = RpcClient.of(process)
    this.#ttlUs = (spec.ttl ?? 10) * SECOND
  }

  /** `wait`: seconds for which further attempts are made; default: one attempt. */
  async acquire(lock: string, options: Readonly<Record<string, unknown>>): Promise<HeldBy | undefined> {
    const endUs = this.#clockUs() + Number(options.wait ?? 0) * SECOND
    const jitter = this.#process.random('redlock.retry')
    for (;;) {
      const held = await this.#attempt(lock)
      if (held !== undefined || this.#clockUs() >= endUs) return held
      await this.#process.sleep(jitter.below(RETRY_WITHIN_US))
    }
  }

  async #attempt(lock: string): Promise<HeldBy | undefined> {
    const value = [...this.#process.random('redlock.value').bytes(20)]
      .map((x) => x.toString(16).padStart(2, '0'))
      .join('')
    const owner = this.#process.name
    // Step 1.
    const beganUs = this.#clockUs()
    // Step 2.
    const granted = await this.#setAll({ do: 'set', key: lock, value, ttlMs: this.#ttlUs / MS, owner })
    // Step 3.
    const elapsedUs = this.#clockUs() - beganUs
    const isMajority = granted >= Math.floor(this.#nodes.length / 2) + 1
    const driftUs = Math.floor((this.#ttlUs * DRIFT_PERCENT) / 100) + DRIFT_FIXED_US
    // Step 4. Without step 3 the client counts its lease from now.
    const checks = this.#spec.step3 !== false
    const validUs = checks ? this.#ttlUs - elapsedUs - driftUs : this.#ttlUs
    if (!isMajority || validUs <= 0) {
      // Step 5.
      await this.#unlockAll(lock, value)
      return undefined
    }
    const validUntilUs = this.#clockUs() + validUs
    return {
      token: undefined,
      guardable: undefined,
      isValid: () => this.#clockUs() < validUntilUs,
      remainingMs: () => Math.max(0, validUntilUs - this.#clockUs()) / MS,
      release: () => this.#unlockAll(lock, value),
    }
  }

  async #setAll(command: RedisCommand): Promise<number> {
    if (this.#spec.send === 'parallel') {
      const answers = await Promise.all(this.#nodes.map((node) => this.#ask(node, command)))
      return answers.filter((answer) => answer?.ok === true).length
    }
    let granted = 0
    for (const node of this.#nodes) if ((await this.#ask(node, command))?.ok === true) granted++
    return granted
  }

  async #unlockAll(key: string, value: string): Promise<void> {
    await Promise.all(this.#nodes.map((node) => this.#ask(node, { do: 'delete', key, ifValue: value })))
  }

  #ask(node: string, command: RedisCommand): Promise<RedisAnswer | undefined> {
    const timeoutUs = (this.#spec.nodeTimeout ?? 0.05) * SECOND
    const text = command.do === 'set' ? 'SET NX PX' : 'unlock'
    return this.#rpc.ask<RedisAnswer>({ machine: node, port: REDIS_PORT }, command, timeoutUs, { text })
  }

  #clockUs(): number {
    return this.#process.machine.clockUs(this.#spec.clock ?? 'monotonic')
  }
}
