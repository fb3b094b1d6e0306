import { InvalidError, padToken } from '@leasehold/core'
import type { GuardOptions, OpenOptions } from './common/guard.js'
import { describe, type GuardableHold, tracked } from './common/hold.js'
import { explain } from './redis/errors.js'
import { CHECK, functionOf, redisLibrary, SCRIPTS, type ScriptName } from './redis/scripts.js'
import { type RedisWarning, refused, warningsOf } from './redis/server-check.js'
import { checkWrites, singleTarget } from './common/single-target.js'

export { redisLibrary } from './redis/scripts.js'
export type { RedisWarning } from './redis/server-check.js'

/** What a guard uses of `ioredis`: `Redis` or `Cluster`. */
export interface RedisClient {
  eval(script: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>
  /** For `{ functions: true }`, `install` and `checkServer`. */
  call?(command: string, ...args: string[]): Promise<unknown>
}

export interface RedisGuardOptions extends GuardOptions {
  /** Before the names of the keys. Default `leasehold:`. The keys of one resource share a hash tag, so Cluster keeps them together. */
  readonly prefix?: string
  /** Calls functions (FCALL, Redis 7 and Valkey) in place of scripts (EVAL). They must have been loaded: see `install`. */
  readonly functions?: boolean
}

/** A value that is kept, with its mark, in one hash of Redis. */
export interface RedisGuard {
  /** Raises the mark: later writes of earlier holds are refused. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Opens, and reads; null when there is no value. */
  get(hold: GuardableHold, options?: OpenOptions): Promise<string | null>
  /** Opens, and writes. */
  set(hold: GuardableHold, value: string, options?: OpenOptions): Promise<void>
  /** Deletes the value. The mark stays. */
  delete(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /**
   * Runs a Lua script of yours after the check, in the same atomic step. Its own keys and arguments are KEYS[2…] and ARGV[5…];
   * KEYS[1] is the guard's hash. In a Cluster all keys must have the hash tag of {@link keyOf}.
   */
  run(
    hold: GuardableHold,
    script: string,
    options?: OpenOptions & { keys?: readonly string[]; args?: readonly string[] },
  ): Promise<unknown>
  /** The hash in which a resource is kept, for readers without a lock: field `value`. */
  keyOf(resource: string): string
  /** Loads the functions of the guard into the server, for `{ functions: true }`. */
  install(): Promise<void>
  /**
   * Asks the server what can make it forget a mark: eviction, no append-only file, replicas that lag.
   * @throws InvalidError (`mismatch`) if `strict` and there is anything
   */
  checkServer(options?: { readonly strict?: boolean }): Promise<readonly RedisWarning[]>
}

/**
 * A guard on Redis or Valkey: value and mark in one hash, checked and written by one script or function.
 *
 * Redis must not evict (`maxmemory-policy noeviction`) and must keep what it has acknowledged (`appendfsync always`, no
 * failover to a replica that lags): where an acknowledged write can be lost, its mark is lost with it, and an older holder
 * can pass. Value and mark roll back together, so what is there is consistent, but old.
 *
 * @example
 * const guard = fence(new Redis())
 * const seen = Number(await guard.get(hold))
 * await guard.set(hold, String(seen + 1))
 */
export function fence(redis: RedisClient, options: RedisGuardOptions = {}): RedisGuard {
  if (typeof redis?.eval !== 'function') throw new InvalidError('a guard for Redis takes a client of ioredis')
  const { prefix = 'leasehold:', functions = false } = options
  if (typeof prefix !== 'string' || /[{}]/.test(prefix)) throw new InvalidError('prefix is text without braces')
  const send = senderOf(redis, functions)
  // A brace in the name would end the hash tag.
  const keyOf = (mark: string) => `${prefix}{${mark.replace(/[%{}]/g, encodeURIComponent)}}`

  const step = (hold: GuardableHold, open: OpenOptions, call: Call): Promise<unknown> =>
    tracked(hold, async () => {
      const target = singleTarget(hold, options, open, 'key')
      if (call.writes) checkWrites(target)
      const proof = [padToken(target.token), target.kind, target.lock]
      try {
        if (target.kind === 'slot') {
          hold.assertHeld()
          await send('kind', [keyOf(target.resource)], proof)
        }
        hold.assertHeld()
        return await send(call.step, [keyOf(target.mark), ...(call.keys ?? [])], [...proof, ...(call.args ?? [])])
      } catch (error) {
        throw explain(error, target, call.writes)
      }
    })

  return {
    open: async (hold, open = {}) => void (await step(hold, open, { step: 'open', writes: false })),
    get: async (hold, open = {}) => (await step(hold, open, { step: 'get', writes: false })) as string | null,
    async set(hold, value, open = {}) {
      if (typeof value !== 'string') throw new InvalidError(`a value is text, not ${describe(value)}`)
      await step(hold, open, { step: 'set', args: [value], writes: true })
    },
    delete: async (hold, open = {}) => void (await step(hold, open, { step: 'delete', writes: true })),
    async run(hold, script, open = {}) {
      if (functions) {
        throw new InvalidError('a script of yours needs EVAL, and this guard uses functions only', {
          hint: 'put your step into a library of your own, beside the text of redisLibrary()',
        })
      }
      const { keys = [], args = [] } = open
      return await step(hold, open, { step: { script: CHECK + script }, keys, args: ['', ...args], writes: true })
    },
    keyOf,
    install: async () => void (await callOf(redis)('FUNCTION', 'LOAD', 'REPLACE', redisLibrary())),
    async checkServer({ strict = false } = {}) {
      const warnings = await warningsOf(callOf(redis))
      if (strict && warnings.length > 0) throw refused(warnings)
      return warnings
    },
  }
}

interface Call {
  readonly step: ScriptName | { readonly script: string }
  readonly writes: boolean
  readonly keys?: readonly string[]
  readonly args?: readonly string[]
}

function senderOf(redis: RedisClient, functions: boolean) {
  const call = functions ? callOf(redis) : undefined
  return (step: Call['step'], keys: readonly string[], args: readonly string[]): Promise<unknown> => {
    if (typeof step !== 'string') return redis.eval(step.script, keys.length, ...keys, ...args)
    if (call === undefined) return redis.eval(SCRIPTS[step], keys.length, ...keys, ...args)
    return call('FCALL', functionOf(step), String(keys.length), ...keys, ...args)
  }
}

function callOf(redis: RedisClient): (command: string, ...args: string[]) => Promise<unknown> {
  if (typeof redis.call !== 'function') {
    throw new InvalidError('this needs a client with call(command, …), such as ioredis')
  }
  return (command, ...args) => (redis.call as NonNullable<RedisClient['call']>)(command, ...args)
}
