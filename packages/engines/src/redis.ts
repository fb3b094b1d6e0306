export type { RedisDriver } from './redis/driver.js'
export type { ApproximateLock } from './redis/lock.js'
export { type ApproximateLocks, connectApproximate } from './redis/locks.js'
export type { ApproximateCallOptions, ApproximateOptions } from './redis/options.js'
