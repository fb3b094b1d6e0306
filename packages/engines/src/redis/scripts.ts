/**
 * KEYS[1] the lock; ARGV: our value, TTL in ms. Returns -3 when it is ours now, or the remaining time of its holder (-1: for
 * ever). It may be ours already, after a lost answer.
 */
export const ACQUIRE = `
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return -3 end
if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return -3 end
return redis.call('pttl', KEYS[1])`

/** KEYS[1] the lock; ARGV: our value, TTL in ms. 1: extended; 0: it is not ours. Never re-creates the lock. */
export const EXTEND = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])`

/** KEYS[1] the lock; ARGV: our value, the channel of the waiters. Returns 1 + the number of subscribers notified; 0: it was not ours. */
export const RELEASE = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
return 1 + redis.call('publish', ARGV[2], '')`

/** KEYS[1] the lock; ARGV: our value, the next one's, TTL in ms. 1: the next one has it; 0: it was not ours. */
export const HANDOVER = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`
