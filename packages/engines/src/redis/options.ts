import { type Duration, InvalidError, parseDuration } from '@leasehold/core'
import type { RedisDriver } from './driver.js'

export interface ApproximateOptions {
  /** How long a lock stays held after its holder has died. Default 10 s. */
  readonly ttl?: Duration
  /** How long to wait for a lock. Default 30 s; `Infinity` is allowed. */
  readonly wait?: Duration
  /** How long before the end of the TTL a lock stops being held here. Default ttl/10, at least 20 ms. */
  readonly margin?: Duration
  /** The prefix of every key. Default `leasehold:approximate:`. */
  readonly prefix?: string
  /** For a connection, and for the answer to a command. Default 5 s. */
  readonly connectTimeout?: Duration
  /** The module `ioredis` or `redis`. Default: the one that is installed. */
  readonly driver?: RedisDriver
}

export interface ApproximateCallOptions extends Pick<ApproximateOptions, 'ttl' | 'wait' | 'margin'> {
  /** Ends the waiting with `AbortedError`. */
  readonly signal?: AbortSignal
}

export interface Settings {
  readonly ttlMs: number
  readonly waitMs: number
  readonly marginMs: number
}

const TTL_MIN_MS = 100
const TTL_MAX_MS = 24 * 60 * 60 * 1_000
const MARGIN_MIN_MS = 20

/** @throws InvalidError */
export function settingsOf(defaults: ApproximateOptions, options: ApproximateCallOptions = {}): Settings {
  const ttlMs = parseDuration(options.ttl ?? defaults.ttl ?? '10s', 'ttl', { noSmallNumbers: true })
  if (ttlMs < TTL_MIN_MS || ttlMs > TTL_MAX_MS) {
    throw new InvalidError(`a ttl is 100 ms to 24 h, not ${ttlMs} ms`)
  }
  const wait = options.wait ?? defaults.wait ?? '30s'
  const waitMs = parseDuration(wait, 'wait', { noSmallNumbers: true, infinite: true })
  const margin = options.margin ?? defaults.margin
  const marginMs = margin === undefined ? Math.max(MARGIN_MIN_MS, ttlMs / 10) : parseDuration(margin, 'margin')
  if (marginMs < ttlMs / 10 || marginMs >= ttlMs) {
    throw new InvalidError(`a margin is a tenth of the ttl at least, and less than it: not ${marginMs} of ${ttlMs} ms`)
  }
  return { ttlMs, waitMs, marginMs }
}
