import { type Command, LEVEL_MAX, type LockState, type Result } from '@leasehold/core'
import type { ReadView } from '../../src/member.js'
import type { ReplicaOptions } from '../../src/replica-options.js'
import type { MemberInfo } from '../../src/cluster-meta.js'
import type { Network } from '../../src/platform.js'
import { noopLogger } from '../../src/noop.js'
import { Replica } from '../../src/replica.js'
import { PEER_KINDS } from '../../src/wire/peer-frames.js'
import { SimDisk, seeded } from './sim-disk.js'
import { SimClock } from './world.js'

/** Most events without time passing. More mean an endless loop. */
const STEPS_AT_ONCE_MAX = 20_000
const CLUSTER = 'c0'.repeat(16)

export interface Site {
  readonly info: MemberInfo
  readonly disk: SimDisk
  readonly clock: SimClock
  replica: Replica | undefined
  /** Increases at every start: frames to earlier starts are lost. */
  life: number
  handler: ((from: number, frame: Uint8Array) => void) | undefined
}

/** Members on simulated machines with one clock, and a network that delays, loses and partitions. */
export class Cluster {
  readonly sites: Site[]
  /** The founders of the cluster. Members that join later get the same list. */
  readonly founders: readonly MemberInfo[]
  readonly choose: (limit: number) => number
  /** Sent so far. */
  frames = 0
  lossPercent = 0
  delayMaxMs = 5
  /** Directed links that are cut, as `from>to`. */
  readonly cut = new Set<string>()
  /** Members of a version without statements. */
  readonly older = new Set<Site>()
  /** Members whose disks are stuck. */
  readonly stalled = new Set<Site>()
  private readonly clock = new SimClock()
  private readonly options: Partial<ReplicaOptions>
  /** Feature level and floor of the bootstrap record. */
  private readonly record: { readonly level?: number; readonly floor?: number }
  private lastNow = 0
  private stepsAtOnce = 0

  constructor(
    count: number,
    seed = 1,
    options: Partial<ReplicaOptions> = {},
    record: { readonly level?: number; readonly floor?: number } = { level: LEVEL_MAX },
  ) {
    this.options = options
    this.record = record
    this.choose = seeded(seed)
    this.sites = Array.from({ length: count }, (_, i) => this.site(i))
    this.founders = this.sites.map(({ info }) => info)
    for (const site of this.sites) this.start(site)
  }

  /** A machine with an empty disk, not yet started. */
  site(i: number): Site {
    const info = { node: 1000 + i, name: `n${i + 1}`, peer: `host${i + 1}:1`, url: `http://host${i + 1}` }
    return { info, disk: new SimDisk(), clock: this.clock, replica: undefined, life: 0, handler: undefined }
  }

  start(site: Site): void {
    site.life++
    const { life } = site
    const choose = seeded(this.choose(2 ** 32))
    const alive = (action: () => void) => () => {
      if (site.life === life) action()
    }
    const platform = {
      disk: site.disk,
      clock: {
        monotonicMs: () => this.clock.monotonicMs(),
        wallMs: () => this.clock.wallMs(),
        after: (delayMs: number, callback: () => void) => this.clock.after(delayMs, alive(callback)),
      },
      random: { bytes: (length: number) => Uint8Array.from({ length }, () => choose(256)), below: choose },
      network: this.network(site),
      log: noopLogger,
    }
    const bootstrap = { cluster: { id: CLUSTER, node: site.info.node, founders: this.founders, ...this.record } }
    const all = {
      bootstrap,
      platform,
      name: site.info.name,
      url: site.info.url,
      segmentBytes: 256 * 1024,
      reserveBytes: 64 * 1024,
      ...this.options,
    }
    let failure: Error | undefined
    Replica.open(all, (error, replica) => {
      failure = error
      site.replica = replica
    })
    this.until(() => site.replica !== undefined || failure !== undefined)
    if (failure) throw failure
  }

  /** Power loss. */
  crash(site: Site): void {
    site.life++
    site.replica = undefined
    site.handler = undefined
    site.disk.crash(this.choose)
  }

  /** Kills the process only: its writes remain readable and unsynced. */
  kill(site: Site): void {
    site.life++
    site.replica = undefined
    site.handler = undefined
    site.disk.kill()
  }

  isolate(site: Site): void {
    for (const { info } of this.sites) {
      this.cut.add(`${site.info.node}>${info.node}`)
      this.cut.add(`${info.node}>${site.info.node}`)
    }
  }

  heal(): void {
    this.cut.clear()
  }

  get leader(): Site | undefined {
    const leaders = this.sites.filter(({ replica }) => replica?.status.role === 'leader')
    return leaders.sort((a, b) => (b.replica as Replica).status.term - (a.replica as Replica).status.term)[0]
  }

  /** Returns a ready leader: its first entry is applied. */
  elect(): Site {
    this.until(() => {
      const { leader } = this
      return leader?.replica?.status.appliedIndex === leader?.replica?.status.commitIndex && this.serves(leader)
    })
    return this.leader as Site
  }

  private serves(site: Site | undefined): boolean {
    let served = false
    site?.replica?.read((view) => {
      served = !('refused' in view)
    })
    this.advance(50)
    return served
  }

  submit(site: Site, command: Command): Result {
    let result: Result | undefined
    site.replica?.submit(command, (answer) => {
      result = answer
    })
    this.until(() => result !== undefined)
    return result as unknown as Result
  }

  read<T>(site: Site, look: (view: ReadView<LockState>) => T): T {
    let seen: { readonly value: T } | undefined
    site.replica?.read((view) => {
      if ('refused' in view) throw new Error(view.refused.message)
      seen = { value: look(view) }
    })
    this.until(() => seen !== undefined)
    return (seen as unknown as { value: T }).value
  }

  get now(): number {
    return this.clock.now
  }

  until(condition: () => boolean, ms = 60_000): void {
    const end = this.clock.now + ms
    while (!condition()) if (!this.step(end)) throw new Error(`the condition does not hold after ${ms} ms`)
  }

  advance(ms: number): void {
    const end = this.clock.now + ms
    while (this.step(end)) {}
    this.clock.now = end
  }

  /** One completion of some disk, or the next timer. */
  step(end: number): boolean {
    this.stepsAtOnce = this.clock.now === this.lastNow ? this.stepsAtOnce + 1 : 0
    this.lastNow = this.clock.now
    if (this.stepsAtOnce > STEPS_AT_ONCE_MAX) throw new Error(`time stands still at ${this.lastNow}`)
    const busy = this.sites.filter((site) => !site.disk.idle && !this.stalled.has(site))
    const site = busy.length > 0 && this.choose(4) > 0 ? busy[this.choose(busy.length)] : undefined
    if (site) return site.disk.runOne()
    if (this.clock.runOne(end)) return true
    return busy.length > 0 ? (busy[0] as Site).disk.runOne() : false
  }

  private network(site: Site): Network {
    return {
      send: (to, _lane, frame) => {
        const link = `${site.info.node}>${to}`
        if (this.cut.has(link) || this.choose(100) < this.lossPercent) return
        const target = this.sites.find(({ info }) => info.node === to)
        if (!target) return
        if (frame[1] === PEER_KINDS.statement && (this.older.has(site) || this.older.has(target))) return
        this.frames++
        const { life } = target
        const copies = this.lossPercent > 0 && this.choose(20) === 0 ? 2 : 1
        for (let n = 0; n < copies; n++) {
          this.clock.after(1 + this.choose(this.delayMaxMs), () => {
            if (target.life === life && !this.cut.has(link)) target.handler?.(site.info.node, frame)
          })
        }
      },
      receive: (handler) => {
        site.handler = handler
      },
      setPeers: () => {},
    }
  }
}
