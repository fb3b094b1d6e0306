import { abortedError, bounded, type ClientPlatform, defaultPlatform, Elapsed } from '@leasehold/client'
import {
  AbortedError,
  BusyError,
  checkName,
  type HoldLostError,
  InvalidError,
  parseDuration,
  UnavailableError,
} from '@leasehold/core'
import { errorOfRedis, type RedisPort, redisPort } from './driver.js'
import { LocalQueue, type LocalQueueHost } from './local-queue.js'
import type { ApproximateLock } from './approximate-lock.js'
import { type ApproximateCallOptions, type ApproximateOptions, settingsOf } from './options.js'
import { EXTEND } from './scripts.js'

/** The shortest time for an answer, and the share of the shortest TTL: after it, another connection has time to extend a lock. */
const ANSWER_MIN_MS = 500
const TTL_SHARE = 4
const PREFIX_DEFAULT = 'leasehold:approximate:'

/**
 * A client for approximate locks in one Redis. They save work that would be done twice; they protect nothing. Redis may lose
 * them (a restart, an eviction, a failover), and a paused holder does not notice that another one has acquired the lock.
 *
 * @throws InvalidError for an invalid URL or option; UnavailableError when Redis cannot be reached
 * @example
 * const cache = await connectApproximate('redis://127.0.0.1:6379')
 * await cache.request('report/2026-11', async (lock) => { … })
 */
export async function connectApproximate(url: string, options: ApproximateOptions = {}): Promise<ApproximateLocks> {
  if (!/^(redis|rediss):\/\//.test(url)) {
    throw new InvalidError('approximate locks live in Redis', { hint: "connectApproximate('redis://host:6379')" })
  }
  settingsOf(options)
  const timeoutMs = parseDuration(options.connectTimeout ?? '5s', 'connectTimeout')
  const port = await redisPort(url, options.driver, timeoutMs)
  try {
    await bounded(defaultPlatform, port.connect(), {
      what: 'connect',
      timeoutMs,
      timeoutError: () => new UnavailableError(`Redis did not answer within ${timeoutMs} ms`),
    })
  } catch (error) {
    port.close()
    throw errorOfRedis(error, 'cannot connect')
  }
  return new ApproximateLocks(port, options, timeoutMs)
}

export class ApproximateLocks implements AsyncDisposable {
  readonly #port: RedisPort
  readonly #options: ApproximateOptions
  /** For an answer. */
  #timeoutMs: number
  /** When the connections were last replaced. */
  #connectedAt = 0
  readonly #prefix: string
  readonly #platform: ClientPlatform = defaultPlatform
  readonly #queues = new Map<string, LocalQueue>()
  readonly #held = new Set<ApproximateLock>()
  readonly #host: LocalQueueHost
  #closed = false

  /** Made by {@link connectApproximate}. */
  constructor(port: RedisPort, options: ApproximateOptions, timeoutMs: number) {
    this.#port = port
    this.#options = options
    this.#timeoutMs = timeoutMs
    this.#prefix = options.prefix ?? PREFIX_DEFAULT
    this.#host = this.#makeHost()
  }

  /** @throws BusyError (`wait: 0`), AcquireTimeoutError, AbortedError, UnavailableError */
  async acquire(name: string, options: ApproximateCallOptions = {}): Promise<ApproximateLock> {
    if (this.#closed) throw new AbortedError('the client is closed')
    checkName(name)
    const settings = settingsOf(this.#options, options)
    this.#timeoutMs = Math.max(ANSWER_MIN_MS, Math.min(this.#timeoutMs, settings.ttlMs / TTL_SHARE))
    const { signal } = options
    if (signal?.aborted) throw abortedError('acquire', signal)
    const queue = this.#queue(name)
    const value = this.#host.value()
    if (settings.waitMs === 0) {
      const lock = await queue.attempt(settings, value)
      if (lock) return this.#keep(lock)
      throw new BusyError(`${name} is taken`)
    }
    return new Promise((resolve, reject) => {
      const aborted = () => leave(abortedError('acquire', signal as AbortSignal))
      const done = () => signal?.removeEventListener('abort', aborted)
      const leave = queue.enqueue({
        settings,
        value,
        resolve: (lock) => {
          done()
          resolve(this.#keep(lock))
        },
        reject: (error) => {
          done()
          reject(error)
        },
      })
      signal?.addEventListener('abort', aborted)
    })
  }

  /** Never waits. `null`: the lock is held. */
  async tryAcquire(name: string, options: Omit<ApproximateCallOptions, 'wait'> = {}): Promise<ApproximateLock | null> {
    try {
      return await this.acquire(name, { ...options, wait: 0 })
    } catch (error) {
      if (error instanceof BusyError) return null
      throw error
    }
  }

  /**
   * Runs `body` under the lock and returns its value, or throws its error. When the lock was lost meanwhile, throws a
   * `HoldLostError` with the value in `result`.
   */
  async request<T>(name: string, body: (lock: ApproximateLock) => T | Promise<T>): Promise<T>
  async request<T>(
    name: string,
    options: ApproximateCallOptions,
    body: (lock: ApproximateLock) => T | Promise<T>,
  ): Promise<T>
  async request<T>(
    name: string,
    second: ApproximateCallOptions | ((lock: ApproximateLock) => T | Promise<T>),
    third?: (lock: ApproximateLock) => T | Promise<T>,
  ): Promise<T> {
    const [options, body] = typeof second === 'function' ? [{}, second] : [second, third]
    if (typeof body !== 'function') throw new InvalidError('request takes a function to run')
    const lock = await this.acquire(name, options)
    let value: T
    let lost: HoldLostError | null = null
    try {
      value = await body(lock)
      if (lock.state === 'lost') lost = await lock.lost
    } finally {
      // What cannot be released ends by its TTL.
      await lock.release().catch(() => {})
    }
    if (!lost) return value
    lost.result = value
    throw lost
  }

  /** Releases what is held, ends all waiting, and closes the connections. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const error = new AbortedError('the client is closed')
    for (const queue of this.#queues.values()) queue.close(error)
    // What cannot be released ends by its TTL.
    await Promise.all([...this.#held].map((lock) => lock.release().catch(() => {})))
    this.#port.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #keep(lock: ApproximateLock): ApproximateLock {
    this.#held.add(lock)
    return lock
  }

  #queue(name: string): LocalQueue {
    let queue = this.#queues.get(name)
    if (!queue) this.#queues.set(name, (queue = new LocalQueue(name, this.#host)))
    return queue
  }

  /** A connection on which a command has had no answer may have gone silent: leaves it, once for all that wait on it. */
  #silent(sentAt: number): void {
    if (this.#closed || sentAt < this.#connectedAt) return
    this.#connectedAt = this.#platform.monotonicMs()
    this.#port.reconnect()
  }

  #makeHost(): LocalQueueHost {
    const platform = this.#platform
    const channel = (name: string) => `${this.#prefix}${name}`
    const run: LocalQueueHost['run'] = async (script, name, args, what) => {
      const timeoutMs = this.#timeoutMs
      const sentAt = platform.monotonicMs()
      try {
        return await bounded(platform, this.#port.run(script, this.#prefix + name, args), {
          what,
          timeoutMs,
          timeoutError: () => {
            this.#silent(sentAt)
            return new UnavailableError(`Redis: ${what}: no answer within ${timeoutMs} ms`)
          },
        })
      } catch (error) {
        throw errorOfRedis(error, what)
      }
    }
    return {
      platform,
      elapsed: new Elapsed(platform),
      run,
      channel,
      subscribe: (name, listener) => this.#port.subscribe(channel(name), listener),
      value: () => Array.from(platform.randomBytes(16), (byte) => byte.toString(16).padStart(2, '0')).join(''),
      onEmpty: (queue) => this.#queues.get(queue.name) === queue && this.#queues.delete(queue.name),
      async extend(lock) {
        const { name, value, ttlMs } = lock.internals
        return (await run(EXTEND, name, [value, String(ttlMs)], 'cannot extend a lock')) === 1
      },
      release: (lock) => this.#queue(lock.name).release(lock),
      ended: (lock, how) => {
        this.#held.delete(lock)
        if (how === 'lost') this.#queues.get(lock.name)?.lost(lock)
      },
    }
  }
}
