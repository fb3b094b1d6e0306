import { InvalidError, LeaseholdError, padToken, UnavailableError, UnknownOutcomeError } from '@leasehold/core'
import type { GuardOptions, OpenOptions } from './guard.js'
import { describe, type GuardableHold, tracked } from './hold.js'
import { mismatch, type Opening, openingOf, staleToken, type Target } from './resource.js'

/** What a guard uses of `ioredis`. */
export interface RedisClient {
  eval(script: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>
}

export interface RedisGuardOptions extends GuardOptions {
  /** Before the names of the keys. Default `leasehold:`. The keys of one resource share a hash tag, so Cluster keeps them together. */
  readonly prefix?: string
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
}

/**
 * KEYS[1]: the resource's hash. ARGV: token as 19 digits, kind, lock, and what to keep as kind of a bare resource.
 * 19 digits compare as text as they do as numbers; Lua's own numbers are doubles and would not.
 */
const CHECK = `
local state = redis.call('HMGET', KEYS[1], 'mark', 'kind', 'lock')
if state[2] and (state[2] ~= ARGV[2] or state[3] ~= ARGV[3]) then
  return redis.error_reply('LEASEHOLDMISMATCH ' .. state[2] .. ' ' .. state[3])
end
if state[1] and state[1] > ARGV[1] then return redis.error_reply('LEASEHOLDSTALE ' .. state[1]) end
if state[1] ~= ARGV[1] then redis.call('HSET', KEYS[1], 'mark', ARGV[1], 'kind', ARGV[2], 'lock', ARGV[3]) end
`
const OPEN = `${CHECK} return 'OK'`
const GET = `${CHECK} return redis.call('HGET', KEYS[1], 'value')`
const SET = `${CHECK} redis.call('HSET', KEYS[1], 'value', ARGV[4]) return 'OK'`
const DELETE = `${CHECK} redis.call('HDEL', KEYS[1], 'value') return 'OK'`
const KIND = `
local state = redis.call('HMGET', KEYS[1], 'kind', 'lock')
if state[1] and (state[1] ~= 'permits' or state[2] ~= ARGV[1]) then
  return redis.error_reply('LEASEHOLDMISMATCH ' .. state[1] .. ' ' .. state[2])
end
if not state[1] then redis.call('HSET', KEYS[1], 'kind', 'permits', 'lock', ARGV[1]) end
return 'OK'`

/**
 * A guard on Redis or Valkey: value and mark in one hash, checked and written by one script.
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
  const { prefix = 'leasehold:' } = options
  if (typeof prefix !== 'string' || /[{}]/.test(prefix)) throw new InvalidError('prefix is text without braces')
  const keyOf = (mark: string) => `${prefix}{${mark}}`

  const step = (hold: GuardableHold, open: OpenOptions, call: Call): Promise<unknown> =>
    tracked(hold, async () => {
      const opening = openingOf(hold, options, open)
      const target = single(opening)
      if (call.writes && !target.writes) throw new InvalidError('a shared hold can only read', { code: 'mismatch' })
      try {
        if (target.kind === 'slot') {
          hold.assertHeld()
          await redis.eval(KIND, 1, keyOf(target.resource), target.lock)
        }
        hold.assertHeld()
        const keys = [keyOf(target.mark), ...(call.keys ?? [])]
        const proof = [padToken(target.token), target.kind, target.lock]
        return await redis.eval(call.script, keys.length, ...keys, ...proof, ...(call.args ?? []))
      } catch (error) {
        throw explain(error, target, call.writes)
      }
    })

  return {
    open: async (hold, open = {}) => void (await step(hold, open, { script: OPEN, writes: false })),
    get: async (hold, open = {}) => (await step(hold, open, { script: GET, writes: false })) as string | null,
    async set(hold, value, open = {}) {
      if (typeof value !== 'string') throw new InvalidError(`a value is text, not ${describe(value)}`)
      await step(hold, open, { script: SET, args: [value], writes: true })
    },
    delete: async (hold, open = {}) => void (await step(hold, open, { script: DELETE, writes: true })),
    run: (hold, script, open = {}) =>
      step(hold, open, {
        script: CHECK + script,
        keys: open.keys ?? [],
        args: ['', ...(open.args ?? [])],
        writes: true,
      }),
    keyOf,
  }
}

interface Call {
  readonly script: string
  readonly writes: boolean
  readonly keys?: readonly string[]
  readonly args?: readonly string[]
}

/** One script checks one resource: several would have to live in one slot of the Cluster. */
function single({ targets }: Opening): Target {
  const [target, ...more] = targets as [Target, ...Target[]]
  if (more.length > 0)
    throw new InvalidError('a hold of several locks: which one protects this key?', { hint: 'say { lock }' })
  return target
}

function explain(error: unknown, target: Target, writes: boolean): unknown {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  const stale = /LEASEHOLDSTALE (\d{19})/.exec(message)
  if (stale !== null) return staleToken(target.mark, target.token, BigInt(stale[1] as string))
  const other = /LEASEHOLDMISMATCH (\S+) (.*)/.exec(message)
  if (other !== null) {
    const [, kind, lock] = other as unknown as [string, string, string]
    const expected = target.kind === 'slot' && kind !== 'slot' ? 'permits' : target.kind
    return mismatch(target, { kind, lock }, expected) ?? error
  }
  if (!/connection is closed|ECONN|EPIPE|ETIMEDOUT|max retries per request|stream isn't writeable/i.test(message))
    return error
  // A write may have arrived although its answer did not.
  if (!writes || /isn't writeable|ECONNREFUSED/i.test(message))
    return new UnavailableError(`Redis is not there: ${message}`, { cause: error })
  return new UnknownOutcomeError('the write was sent and its answer is lost: it may or may not have taken effect', {
    cause: error,
  })
}
