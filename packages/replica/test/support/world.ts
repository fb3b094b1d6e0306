import type { Ack, Acquire, Command, HoldId, LockState, Millis, Result, SessionId } from '@leasehold/core'
import type { ReadView } from '../../src/member.js'
import type { ReplicaOptions } from '../../src/replica-options.js'
import type { Clock, Platform, Random } from '../../src/platform.js'
import { noopNetwork, noopLogger } from '../../src/noop.js'
import { Replica } from '../../src/replica.js'
import { SimDisk, seeded } from './sim-disk.js'

interface Timer {
  readonly at: number
  readonly order: number
  readonly callback: () => void
}

/** A clock that only the test advances. */
export class SimClock implements Clock {
  now = 5_000
  private timers: Timer[] = []
  private order = 0

  monotonicMs(): number {
    return this.now
  }

  /** 2026-12-01, plus the time that has passed. */
  wallMs(): number {
    return 1_796_083_200_000 + this.now
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.now + Math.max(0, delayMs), order: this.order++, callback }
    this.timers.push(timer)
    return () => {
      this.timers = this.timers.filter((other) => other !== timer)
    }
  }

  /** Runs the next timer that is due by `until`, if there is one. */
  runOne(until: number): boolean {
    const next = this.timers.filter((t) => t.at <= until).sort((a, b) => a.at - b.at || a.order - b.order)[0]
    if (!next) return false
    this.timers = this.timers.filter((other) => other !== next)
    this.now = Math.max(this.now, next.at)
    next.callback()
    return true
  }

  clear(): void {
    this.timers = []
  }

  get pending(): number {
    return this.timers.length
  }
}

class SimRandom implements Random {
  private readonly choose: (limit: number) => number
  constructor(seed: number) {
    this.choose = seeded(seed)
  }
  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.choose(256))
  }
  below(limit: number): number {
    return this.choose(limit)
  }
}

/** A member on a simulated machine. */
export class World {
  readonly disk: SimDisk
  readonly clock = new SimClock()
  readonly platform: Platform
  replica!: Replica

  constructor(seed = 1, disk = new SimDisk()) {
    this.disk = disk
    this.platform = { disk, clock: this.clock, random: new SimRandom(seed), network: noopNetwork, log: noopLogger }
  }

  /** Opens the member; throws what `open` reports. */
  open(options: Partial<ReplicaOptions> = {}): Replica {
    let failure: Error | undefined
    let opened: Replica | undefined
    const all = {
      platform: this.platform,
      name: 'n1',
      bootstrap: {},
      segmentBytes: 256 * 1024,
      reserveBytes: 64 * 1024,
      ...options,
    }
    Replica.open(all, (error, replica) => {
      failure = error
      opened = replica
    })
    this.until(() => opened !== undefined || failure !== undefined)
    if (!opened) throw failure
    this.replica = opened
    return opened
  }

  /** Advances time and disk until `condition` holds, at most `ms`. */
  until(condition: () => boolean, ms = 30_000): void {
    const end = this.clock.now + ms
    while (!condition()) {
      if (this.disk.runOne()) continue
      if (!this.clock.runOne(end)) throw new Error(`the condition does not hold after ${ms} ms`)
    }
  }

  advance(ms: number): void {
    const end = this.clock.now + ms
    while (this.disk.runOne() || this.clock.runOne(end)) {}
    this.clock.now = end
  }

  /** Suspends the machine: time passes, but no timer runs. */
  pause(ms: number): void {
    this.clock.now += ms
  }

  submit(command: Command): Result {
    let result: Result | undefined
    this.replica.submit(command, (answer) => {
      result = answer
    })
    if (result) throw new Error('answered inside the call')
    this.until(() => result !== undefined)
    return result as unknown as Result
  }

  read<T>(look: (view: ReadView<LockState>) => T): T {
    let seen: { readonly value: T } | undefined
    this.replica.read((view) => {
      if ('refused' in view) throw new Error(view.refused.message)
      seen = { value: look(view) }
    })
    this.until(() => seen !== undefined)
    return (seen as unknown as { value: T }).value
  }

  /** Power loss, and a new start. */
  crash(choose: (limit: number) => number = () => 0, options: Partial<ReplicaOptions> = {}): Replica {
    this.disk.crash(choose)
    this.clock.clear()
    return this.open(options)
  }

  stop(): void {
    let done = false
    this.replica.stop(() => {
      done = true
    })
    this.until(() => done)
  }

  openSession(ttlMs = 10_000, nonce = 'ab'.repeat(16)): SessionId {
    const result = this.submit({
      kind: 'openSession',
      nonce,
      secret: '00'.repeat(16),
      ttlMs: ttlMs as Millis,
      client: 'test',
      local: false,
    })
    if (result.kind !== 'opened') throw new Error(JSON.stringify(result))
    return result.session
  }

  acquire(session: SessionId, request: number, name: string, more: Partial<Acquire> = {}): HoldId {
    const result = this.submit(acquire(session, request, name, more))
    if (result.kind !== 'granted') throw new Error(JSON.stringify(result))
    return result.grant.hold
  }
}

export const NO_ACK: Ack = { lowest: 1, also: [] }

export function acquire(session: SessionId, request: number, name: string, more: Partial<Acquire> = {}): Acquire {
  return {
    kind: 'acquire',
    session,
    request,
    ack: { lowest: request, also: [] },
    locks: [{ name, mode: 'exclusive' }],
    waitMs: 0,
    lockDelayMs: 0 as Millis,
    persistent: false,
    portable: false,
    data: new Uint8Array(0),
    ...more,
  }
}
