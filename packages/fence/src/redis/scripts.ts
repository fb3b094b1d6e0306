/**
 * Checks and raises the mark. KEYS[1]: the resource's hash. ARGV: token as 19 digits, kind, lock. Strings of 19 digits compare
 * like numbers; Lua's own numbers are doubles and lose digits. A hash with a TTL is rejected, because without its mark old
 * holders could write again.
 */
export const CHECK = `
local state = redis.call('HMGET', KEYS[1], 'mark', 'kind', 'lock')
if state[2] and (state[2] ~= ARGV[2] or state[3] ~= ARGV[3]) then
  return redis.error_reply('LEASEHOLDMISMATCH ' .. state[2] .. ' ' .. state[3])
end
if state[1] and state[1] > ARGV[1] then return redis.error_reply('LEASEHOLDSTALE ' .. state[1]) end
if redis.call('PTTL', KEYS[1]) >= 0 then return redis.error_reply('LEASEHOLDEXPIRES') end
if state[1] ~= ARGV[1] then redis.call('HSET', KEYS[1], 'mark', ARGV[1], 'kind', ARGV[2], 'lock', ARGV[3]) end
`

/** The guard's atomic steps, by name. ARGV[4] is the value. */
export const SCRIPTS = {
  open: `${CHECK} return 'OK'`,
  get: `${CHECK} return redis.call('HGET', KEYS[1], 'value')`,
  set: `${CHECK} redis.call('HSET', KEYS[1], 'value', ARGV[4]) return 'OK'`,
  delete: `${CHECK} redis.call('HDEL', KEYS[1], 'value') return 'OK'`,
  kind: `
local state = redis.call('HMGET', KEYS[1], 'kind', 'lock')
if state[1] and (state[1] ~= 'permits' or state[2] ~= ARGV[3]) then
  return redis.error_reply('LEASEHOLDMISMATCH ' .. state[1] .. ' ' .. state[2])
end
if not state[1] then redis.call('HSET', KEYS[1], 'kind', 'permits', 'lock', ARGV[3]) end
return 'OK'`,
} as const
export type ScriptName = keyof typeof SCRIPTS

/** Library and functions carry a version, so that two releases of this package can share one Redis. */
const LIBRARY = 'leasehold_1'

export function functionOf(name: ScriptName): string {
  return `${LIBRARY}_${name}`
}

/**
 * Returns the same steps as functions of Redis 7 or Valkey, for servers that forbid EVAL. An operator loads them once with
 * `redis-cli -x FUNCTION LOAD REPLACE < leasehold.lua`.
 */
export function redisLibrary(): string {
  const functions = Object.entries(SCRIPTS).map(([name, body]) => {
    const lines = body.trim().replaceAll('\n', '\n  ')
    return `redis.register_function('${functionOf(name as ScriptName)}', function(KEYS, ARGV)\n  ${lines}\nend)`
  })
  return `#!lua name=${LIBRARY}\n${functions.join('\n')}\n`
}
