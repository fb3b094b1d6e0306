import { createLocksOn, type Locks, type LocksOptions, ProtocolEngine } from '@leasehold/client'
import { type Duration, InvalidError, type LockState, parseDuration } from '@leasehold/core'
import { lockViews, MemoryMember, StreamHub } from '@leasehold/replica'
import {
  type ClientClock,
  clientClock,
  FrameworkClock,
  ManualClock,
  type ServiceClock,
  settle,
  soon,
} from './test-clock.js'
import { Line } from './line.js'

export interface TestServiceOptions {
  /**
   * `true`: the service uses the test framework's fake timers (`vi.useFakeTimers()`, `jest.useFakeTimers()`,
   * `mock.timers.enable()`), which the test moves. Default: the time stands still until `advance`.
   */
  readonly framework?: boolean
}

/** What was still open when the service was closed. */
export interface Leftovers {
  readonly sessions: number
  readonly connections: number
  readonly timers: number
}

interface Client {
  readonly locks: Locks
  readonly clock: ClientClock
  readonly line: Line
}

const STEP_MS = 10
const DURING_MAX_MS = 24 * 3_600_000
/** A placeholder: clients of a test connect over a `Line`. */
const URL = 'test:service'

/**
 * A lock service inside a test: the real lock state and the real client, on a clock that the test moves. Nothing waits in
 * real time.
 *
 * @example
 * const service = createTestService()
 * const locks = service.client({ ttl: '10s' })
 * const hold = await locks.acquire('invoice/42')
 * service.dropRenewals(locks)
 * await service.advance('10s')
 * hold.state // 'lost'
 * await service.close()
 */
export class TestService {
  readonly #clock: ServiceClock
  readonly #member: MemoryMember
  readonly #hub: StreamHub<LockState>
  readonly #clients = new Map<Locks, Client>()

  /** @internal */
  constructor(options: TestServiceOptions) {
    this.#clock = options.framework === true ? new FrameworkClock() : new ManualClock()
    const clock = this.#clock
    const startMs = clock.nowMs
    this.#member = new MemoryMember({
      nowMs: () => clock.nowMs - startMs,
      after: (delayMs, callback) => clock.after(delayMs, callback),
      soon,
    })
    this.#hub = new StreamHub({ member: this.#member, views: lockViews })
  }

  /** Milliseconds since 1970, by the clock of the test. */
  get nowMs(): number {
    return this.#clock.nowMs
  }

  /** Returns a client with its own connection to the service, as if in its own process. */
  client(options: LocksOptions = {}): Locks {
    const clock = clientClock(this.#clock)
    const line = new Line(this.#hub)
    const { clientName = '' } = options
    const engine = new ProtocolEngine({ name: URL, urls: [URL], connector: line, platform: clock, clientName })
    const locks = createLocksOn(engine, options, { platform: clock })
    this.#clients.set(locks, { locks, clock, line })
    return locks
  }

  /** Advances the time, and fires every timer when it is due. */
  async advance(by: Duration): Promise<void> {
    await this.#clock.advance(parseDuration(by, 'advance'))
  }

  /** Advances the time in small steps until `work` has settled: for work that waits, such as a queue, a timeout, a reconnect. */
  async during<T>(work: Promise<T>): Promise<T> {
    let settled = false
    const done = () => {
      settled = true
    }
    work.then(done, done)
    await settle()
    for (let passedMs = 0; !settled; passedMs += STEP_MS) {
      if (passedMs > DURING_MAX_MS) throw new InvalidError('the work has not settled within a day of test time')
      await this.#clock.advance(STEP_MS)
    }
    return work
  }

  /**
   * Advances the time while no client runs, like a blocked event loop. Timers that are due fire with the next `advance`.
   */
  block(by: Duration): void {
    this.#clock.jump(parseDuration(by, 'block'))
  }

  /** Pauses one client: its timers do not fire, and no frame reaches it or leaves it. Other clients continue. */
  pause(locks: Locks): void {
    const { clock, line } = this.#of(locks)
    clock.paused = true
    line.pause()
  }

  /** Resumes a paused client: timers that came due meanwhile fire now. */
  async resume(locks: Locks): Promise<void> {
    const { clock, line } = this.#of(locks)
    clock.resume()
    line.resume()
    await settle()
  }

  /** Drops the client's renewals; with `false`, they arrive again. */
  dropRenewals(locks: Locks, drop = true): void {
    this.#of(locks).line.dropsRenewals = drop
  }

  /** Delivers every reply to the client twice; with `false`, once. */
  repeatReplies(locks: Locks, repeat = true): void {
    this.#of(locks).line.repeatsReplies = repeat
  }

  /** Loses the next `count` replies, each with its connection: the service has applied requests of unknown outcome. */
  loseReplies(locks: Locks, count = 1): void {
    this.#of(locks).line.repliesToLose = count
  }

  /** Breaks the client's connection; the client reconnects. */
  cut(locks: Locks): void {
    this.#of(locks).line.cut()
  }

  /** Makes the service unreachable for the client, which does not notice at once; with `false`, reachable. */
  unreachable(locks: Locks, down = true): void {
    const { line } = this.#of(locks)
    line.isDown = down
    if (!down) line.cut()
  }

  /** With `false`, the service has no quorum: it refuses every request, and no session expires. With `true`, it has one. */
  quorum(has: boolean): void {
    this.#member.refuse = has ? undefined : 'no-quorum'
  }

  /** Acts as if the service had been restored from a backup: all holds are lost, with the reason `epoch-changed`. */
  restore(): void {
    this.#member.restore()
    for (const { line } of this.#clients.values()) line.cut()
  }

  /** Closes all clients and the service, and returns what was still open. */
  async close(): Promise<Leftovers> {
    const manual = this.#clock instanceof ManualClock ? this.#clock : undefined
    for (const { locks, line, clock } of this.#clients.values()) {
      line.isDown = false
      line.resume()
      clock.resume()
      const closing = locks.close()
      await (manual ? this.during(closing) : closing)
    }
    await settle()
    const connections = [...this.#clients.values()].reduce((sum, { line }) => sum + line.connections, 0)
    this.#hub.stop()
    this.#member.stop(() => {})
    return { sessions: this.#member.state.machine.sessions.size, connections, timers: manual?.timers ?? 0 }
  }

  #of(locks: Locks): Client {
    const client = this.#clients.get(locks)
    if (client) return client
    throw new InvalidError('this client belongs to another service', { hint: 'make it with service.client()' })
  }
}

/** A lock service for tests, on a clock that the test moves. See {@link TestService}. */
export function createTestService(options: TestServiceOptions = {}): TestService {
  for (const key of Object.keys(options)) {
    if (key !== 'framework') throw new InvalidError(`createTestService has no option ${JSON.stringify(key)}`)
  }
  return new TestService(options)
}
