export type { RedisDriver } from './redis/driver.js'
export type { ApproximateLock } from './redis/approximate-lock.js'
export { type ApproximateLocks, connectApproximate } from './redis/client.js'
export type { ApproximateCallOptions, ApproximateOptions } from './redis/options.js'
