import { InvalidError } from '@leasehold/core'

/** What a guard uses of `ioredis`: `Redis` or `Cluster`. */
export interface RedisClient {
  eval(script: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>
  /** For `{ functions: true }`, `install` and `checkServer`. */
  call?(command: string, ...args: string[]): Promise<unknown>
}

/** @throws InvalidError if the client has no `call` */
export function callOf(redis: RedisClient): (command: string, ...args: string[]) => Promise<unknown> {
  if (typeof redis.call !== 'function') {
    throw new InvalidError('this needs a client with call(command, …), such as ioredis')
  }
  return (command, ...args) => (redis.call as NonNullable<RedisClient['call']>)(command, ...args)
}
