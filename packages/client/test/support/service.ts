import { lockViews, StreamHub } from '@leasehold/replica'
import { createLocksOn, type Engine, type Locks, type LocksOptions, ProtocolEngine } from '../../src/index.js'
import { DirectMember } from './member.js'
import { TestNetwork } from './network.js'
import { settle, TestPlatform } from './platform.js'
import { beside } from './threads.js'

/** Whether the clients' connections and renewals live in another (pretended) thread. */
export const threads = { apart: false }

/** A service and its clients in one process, on one clock that the test moves. */
export class TestService {
  readonly platform = new TestPlatform()
  readonly member = new DirectMember(this.platform)
  readonly network = new TestNetwork()
  readonly hub = new StreamHub({ member: this.member, views: lockViews })
  readonly url = 'http://one'
  readonly #clients: Locks[] = []

  constructor() {
    this.network.hubs.set(this.url, this.hub)
  }

  client(
    options: LocksOptions = {},
    extra: { platform?: TestPlatform; network?: TestNetwork; urls?: string[] } = {},
  ): Locks {
    const platform = extra.platform ?? this.platform
    const own: Engine = new ProtocolEngine({
      urls: extra.urls ?? [this.url],
      connector: extra.network ?? this.network,
      platform,
      clientName: options.clientName ?? '',
    })
    const engine = threads.apart ? beside(own, platform) : own
    const locks = createLocksOn(engine, options, { platform })
    this.#clients.push(locks)
    return locks
  }

  /** A second network to the same service, for a client whose connection alone is to be broken. */
  line(): TestNetwork {
    const network = new TestNetwork()
    network.hubs.set(this.url, this.hub)
    return network
  }

  /** Runs `work` while time passes in small steps, until it settles. */
  async during<T>(work: Promise<T>, stepMs = 10, limitMs = 120_000): Promise<T> {
    let settled = false
    const done = () => {
      settled = true
    }
    work.then(done, done)
    await settle()
    for (let passed = 0; !settled; passed += stepMs) {
      if (passed > limitMs) throw new Error(`not settled within ${limitMs} ms`)
      await this.platform.advance(stepMs)
    }
    return work
  }

  /** Closes everything, and returns what was left over. */
  async end(): Promise<{ timers: number; connections: number; sessions: number }> {
    for (const locks of this.#clients) await this.during(locks.close())
    await settle()
    this.hub.stop()
    this.member.stop(() => {})
    return {
      timers: this.platform.timers,
      connections: this.network.open.size,
      sessions: this.member.state.machine.sessions.size,
    }
  }
}
