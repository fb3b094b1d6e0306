import { InvalidError, padToken } from '@leasehold/core'
import type { GuardOptions, OpenOptions } from './common/guard.js'
import { describe, type GuardableHold } from './common/hold.js'
import { tracked } from './common/tracked.js'
import { callOf, type RedisClient } from './redis/client.js'
import { explain } from './redis/errors.js'
import { CHECK, functionOf, redisLibrary, SCRIPTS, type ScriptName } from './redis/scripts.js'
import { type RedisWarning, strictError, warningsOf } from './redis/server-check.js'
import { checkWrites, singleTarget } from './common/single-target.js'

export type { RedisClient } from './redis/client.js'
export { redisLibrary } from './redis/scripts.js'
export type { RedisWarning } from './redis/server-check.js'

export interface RedisGuardOptions extends GuardOptions {
  /** Prefix of the keys. Default `leasehold:`. The keys of one resource share a hash tag, so Cluster stores them in one slot. */
  readonly prefix?: string
  /** Calls functions (FCALL, Redis 7 and Valkey) instead of scripts (EVAL). `install` loads them. */
  readonly functions?: boolean
}

/** A guard of values, each stored with its mark in one hash of Redis. */
export interface RedisGuard {
  /** Raises the mark: writes of earlier holds are rejected from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Opens and reads; null if there is no value. */
  get(hold: GuardableHold, options?: OpenOptions): Promise<string | null>
  /** Opens and writes. */
  set(hold: GuardableHold, value: string, options?: OpenOptions): Promise<void>
  /** Deletes the value. The mark remains. */
  delete(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /**
   * Runs a Lua script of yours after the check, in the same atomic step. Its keys and arguments are KEYS[2…] and ARGV[5…];
   * KEYS[1] is the guard's hash. In a Cluster all keys must have the hash tag of {@link keyOf}.
   */
  run(
    hold: GuardableHold,
    script: string,
    options?: OpenOptions & { keys?: readonly string[]; args?: readonly string[] },
  ): Promise<unknown>
  /** Returns the key of a resource's hash, for readers without a lock. The value is in the field `value`. */
  keyOf(resource: string): string
  /** Loads the guard's functions into the server, for `{ functions: true }`. */
  install(): Promise<void>
  /**
   * Returns the settings by which the server can lose a mark: eviction, no append-only file, asynchronous replicas.
   * @throws InvalidError (`mismatch`) if `strict` and there is a warning
   */
  checkServer(options?: { readonly strict?: boolean }): Promise<readonly RedisWarning[]>
}

/**
 * A guard for Redis or Valkey. Value and mark are in one hash; one script or function checks and writes both.
 *
 * Redis must not evict (`maxmemory-policy noeviction`) and must not lose acknowledged writes (`appendfsync always`, no failover
 * to a lagging replica). A lost write loses its mark too, and then an older holder can write again. Value and mark roll back
 * together, so the data stays consistent but may be old.
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
  // A brace in the name would end the hash tag early.
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
        throw new InvalidError('your own script needs EVAL, but this guard uses functions only', {
          hint: 'put your step into your own library, next to the text of redisLibrary()',
        })
      }
      const { keys = [], args = [] } = open
      return await step(hold, open, { step: { script: CHECK + script }, keys, args: ['', ...args], writes: true })
    },
    keyOf,
    install: async () => void (await callOf(redis)('FUNCTION', 'LOAD', 'REPLACE', redisLibrary())),
    async checkServer({ strict = false } = {}) {
      const warnings = await warningsOf(callOf(redis))
      if (strict && warnings.length > 0) throw strictError(warnings)
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
