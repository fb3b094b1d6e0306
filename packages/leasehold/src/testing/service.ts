import { createLocksOn, type Locks, type LocksOptions, ProtocolEngine } from '@leasehold/client'
import { type Duration, InvalidError, type LockState, parseDuration } from '@leasehold/core'
import { lockViews, MemoryMember, StreamHub } from '@leasehold/replica'
import { type ClientClock, clientClock, FrameworkClock, ManualClock, type ServiceClock, settle, soon } from './clock.js'
import { Line } from './line.js'

export interface TestServiceOptions {
  /**
   * `true`: time is that of the test framework's fake timers (`vi.useFakeTimers()`, `jest.useFakeTimers()`,
   * `mock.timers.enable()`), which the test moves. Default: time stands still until `advance`.
   */
  readonly framework?: boolean
}

/** What was left over when the service was closed. */
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
/** Not connected to: clients of a test have a line instead. */
const URL = 'test:service'

/**
 * A lock service inside a test: the real lock state and the real client, on a clock that the test moves. Nothing waits for
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

  /** A client with a line of its own to the service: as if in a process of its own. */
  client(options: LocksOptions = {}): Locks {
    const clock = clientClock(this.#clock)
    const line = new Line(this.#hub)
    const { clientName = '' } = options
    const engine = new ProtocolEngine({ name: URL, urls: [URL], connector: line, platform: clock, clientName })
    const locks = createLocksOn(engine, options, { platform: clock })
    this.#clients.set(locks, { locks, clock, line })
    return locks
  }

  /** Time passes, and every timer has its turn. */
  async advance(by: Duration): Promise<void> {
    await this.#clock.advance(parseDuration(by, 'advance'))
  }

  /** Time passes in small steps until `work` has settled. For work that waits: a queue, a time-out, a reconnect. */
  async during<T>(work: Promise<T>): Promise<T> {
    let settled = false
    const done = () => {
      settled = true
    }
    work.then(done, done)
    await settle()
    for (let passedMs = 0; !settled; passedMs += STEP_MS) {
      if (passedMs > DURING_MAX_MS) throw new InvalidError('a day has passed in the test, and the work has not settled')
      await this.#clock.advance(STEP_MS)
    }
    return work
  }

  /**
   * Time passes, and nothing runs meanwhile in any client: a blocked event loop. The service goes on, with the next
   * `advance`.
   */
  block(by: Duration): void {
    this.#clock.jump(parseDuration(by, 'block'))
  }

  /** The client's process stands still: its timers do not run, nothing reaches it, nothing leaves it. Others go on. */
  pause(locks: Locks): void {
    const { clock, line } = this.#of(locks)
    clock.paused = true
    line.pause()
  }

  /** The paused client goes on: what came due meanwhile runs now. */
  async resume(locks: Locks): Promise<void> {
    const { clock, line } = this.#of(locks)
    clock.resume()
    line.resume()
    await settle()
  }

  /** The client's renewals get lost on their way; with `false`, they arrive again. */
  dropRenewals(locks: Locks, drop = true): void {
    this.#of(locks).line.dropsRenewals = drop
  }

  /** Every answer reaches the client twice; with `false`, once again. */
  repeatReplies(locks: Locks, repeat = true): void {
    this.#of(locks).line.repeatsReplies = repeat
  }

  /** The next `count` answers get lost, each with its connection: the service has done what the client does not know. */
  loseReplies(locks: Locks, count = 1): void {
    this.#of(locks).line.repliesToLose = count
  }

  /** Breaks the client's connection; it makes a new one. */
  cut(locks: Locks): void {
    this.#of(locks).line.cut()
  }

  /** The client cannot reach the service, and does not notice at once; with `false`, it can again. */
  unreachable(locks: Locks, down = true): void {
    const { line } = this.#of(locks)
    line.isDown = down
    if (!down) line.cut()
  }

  /** Without a quorum the service refuses everything, and sessions do not end; with `true`, it is back. */
  quorum(has: boolean): void {
    this.#member.refuse = has ? undefined : 'no-quorum'
  }

  /** As if the service had been restored from a backup: all holds are lost, `epoch-changed`. */
  restore(): void {
    this.#member.restore()
    for (const { line } of this.#clients.values()) line.cut()
  }

  /** Closes all clients and the service, and tells what was left over. */
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
    throw new InvalidError('this client is not of this service', { hint: 'make it with service.client()' })
  }
}

/** A lock service for tests, on a clock that the test moves. See {@link TestService}. */
export function createTestService(options: TestServiceOptions = {}): TestService {
  for (const key of Object.keys(options)) {
    if (key !== 'framework') throw new InvalidError(`createTestService has no option ${JSON.stringify(key)}`)
  }
  return new TestService(options)
}
