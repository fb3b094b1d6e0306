import { LEVEL_MAX, type Limits } from '@leasehold/core'
import {
  type BootstrapCluster,
  inspect,
  lockViews,
  type Logger,
  type MemberInfo,
  type Network,
  Replica,
  type ReplicaOptions,
  StreamHub,
} from '@leasehold/replica'
import type { LockState } from '@leasehold/core'
import { replicaClock, replicaRandom } from '../world/bindings/replica-platform.js'
import type { Machine } from '../world/machine.js'
import type { Process } from '../world/process.js'
import type { Happening } from '../world/timeline.js'
import { type DiskEffect, SimulatedDisk } from './disk/disk.js'

const US_PER_MS = 1000
/** A member whose history is not that of its cluster has stopped. */
const CONTRADICTED = /was set back|a majority has gone on without/

/** What all members of a cluster are started with. */
export type MemberSettings = Omit<ReplicaOptions, 'platform' | 'name' | 'url' | 'founding' | 'release'>

export interface MemberOptions {
  readonly name: string
  readonly machine: Machine
  readonly settings: MemberSettings
  readonly epoch: number
  readonly limits?: Partial<Limits>
  /** The way to the other members, for one process. */
  readonly network: (process: Process, member: SimulatedMember) => Network
  /** URLs of all members that take clients. */
  readonly urls: () => readonly string[]
  /** It has said something to another member although its disk had failed. */
  readonly spokeBroken: (member: SimulatedMember) => void
  /** It does not start on what is on its disk. */
  readonly refused: (member: SimulatedMember, error: Error) => void
  /** A member runs: watch it, and let clients come. Returns what is to be done when it ends. */
  readonly opened: (member: SimulatedMember, replica: Replica, hub: StreamHub<LockState>) => () => void
}

/** Where a member may die. */
export type EffectName = DiskEffect | 'message' | 'answer'

/**
 * One member: the production replica and stream service, in a process of a simulated machine, on a simulated disk.
 *
 * States: off → starting → running → off (its process has ended), or refused (it does not start on this disk). A replica
 * that has stopped by itself ends its process.
 */
export class SimulatedMember {
  readonly name: string
  readonly machine: Machine
  readonly disk: SimulatedDisk
  process: Process | undefined
  replica: Replica | undefined
  hub: StreamHub<LockState> | undefined
  /** Why it did not start, the last time. */
  refused: Error | undefined
  /** How often it has refused to start. */
  refusals = 0
  /** Why its replica stopped, the last time. */
  failure: string | undefined
  /** How it becomes a member of its cluster on an empty disk. */
  founding: BootstrapCluster | undefined
  /** How often its replica has stopped by itself. */
  failures = 0
  /** The process that was told that a write or sync has failed: it has nothing more to say to others. */
  broken: Process | undefined
  /** Starts since the beginning. */
  lives = 0
  /** How far it has applied in all its lives on this disk, and the last snapshot of a leader that it took in. */
  appliedMax = 0
  tookIn = 0
  /** Where the process dies: after so many effects; 0: nowhere. */
  #dieAfter = 0
  #dieAt: EffectName | undefined
  #dying: () => void = () => {}
  #off: () => void = () => {}

  readonly #options: MemberOptions

  constructor(options: MemberOptions) {
    this.#options = options
    this.name = options.name
    this.machine = options.machine
    this.disk = new SimulatedDisk(options.name, this.machine.world.stream('disk', options.name))
    this.machine.onPowerOff(() => this.disk.crash())
  }

  get url(): string {
    return urlOf(this.name)
  }

  get running(): boolean {
    return this.process?.alive === true && this.replica !== undefined && this.replica.status.failure === undefined
  }

  /** It would refuse again: what is on its disk has changed. Any other trouble of a disk passes. */
  get isDamaged(): boolean {
    return this.refused !== undefined && !/EIO|EROFS|no space left|is full/.test(this.refused.message)
  }

  get leads(): boolean {
    return this.running && this.replica?.status.role === 'leader'
  }

  /** How far it has applied; 0 when it does not run. */
  get applied(): number {
    return this.running && this.replica ? inspect(this.replica).applied.index : 0
  }

  start(): void {
    if (this.process?.alive) return
    if (!this.machine.on) this.machine.powerOn()
    this.lives++
    this.refused = undefined
    this.failure = undefined
    if (this.lives > 1) this.#tell({ kind: 'process', who: this.name, state: 'up' })
    const process = this.machine.spawn({ name: this.name })
    this.process = process
    process.onEnd(() => this.#ended(process))
    process.soon(() => this.#open(process))
  }

  /** It gets an empty disk. */
  wipe(): void {
    this.disk.wipe()
    this.appliedMax = 0
    this.tookIn = 0
  }

  /** It has applied entries up to `index`, one after another, or with a snapshot of the leader. */
  hasApplied(index: number): void {
    if (index > this.appliedMax + 1) this.tookIn = index
    this.appliedMax = Math.max(this.appliedMax, index)
  }

  /** Cuts the power: what was not synced may be lost. */
  powerOff(): void {
    this.machine.powerOff()
  }

  /** Kills the process. What it wrote can be read; what it has not synced may still be lost with the power. */
  kill(): void {
    if (!this.process?.alive) return
    this.process.kill()
    this.disk.processDied()
  }

  /**
   * The process dies right at its `nth` effect from now: a write, the end of one, a message, an answer. `what`: only effects
   * of this name count; at `written` a write is on its way to the disk, and nothing of it is synced.
   */
  dieAtEffect(nth: number, how: () => void, what?: EffectName): void {
    this.#dieAfter = nth
    this.#dieAt = what
    this.#dying = how
  }

  /** Counts an effect of the running process. False: it is dead, and nothing happens. */
  effect(process: Process, what: EffectName): boolean {
    if (!process.alive) return false
    if (this.#dieAfter > 0 && (this.#dieAt ?? what) === what && --this.#dieAfter === 0) this.#dying()
    return process.alive
  }

  /** Counts a message to another member as an effect. False: it is dead, and nothing is said. */
  speaks(process: Process): boolean {
    if (this.broken === process) this.#options.spokeBroken(this)
    return this.effect(process, 'message')
  }

  #open(process: Process): void {
    const { name, settings, epoch, limits, network } = this.#options
    const founding = {
      epoch,
      ...(limits ? { limits } : {}),
      ...(this.founding ? { cluster: { level: LEVEL_MAX, ...this.founding } } : {}),
    }
    const platform = {
      disk: this.disk.mount({
        after: (delayMs, action) => this.#afterDisk(process, delayMs, action),
        effect: (what) => this.effect(process, what),
        failed: () => {
          this.broken = process
        },
      }),
      clock: replicaClock(process),
      random: replicaRandom(process),
      network: network(process, this),
      log: this.#logger(),
    }
    Replica.open({ ...settings, platform, name, url: this.url, bootstrap: founding }, (error, replica) => {
      if (!process.alive) return
      if (!replica) {
        this.refused = error
        this.refusals++
        this.#tell({ kind: 'note', who: this.name, text: `does not start: ${error?.message ?? 'for no reason'}` })
        process.kill()
        if (this.isDamaged && error) this.#options.refused(this, error)
        return
      }
      this.#opened(process, replica)
    })
  }

  #opened(process: Process, replica: Replica): void {
    this.replica = replica
    this.hub = new StreamHub({ member: replica, views: lockViews, urls: this.#options.urls })
    const end = this.#options.opened(this, replica, this.hub)
    const offStatus = replica.onStatus(({ failure }) => {
      if (failure === undefined) return
      this.failure = failure
      this.failures++
      const end = (): void => {
        if (process.alive) this.kill()
      }
      // What keeps it from starting again is written down first.
      if (CONTRADICTED.test(failure)) replica.stop(end)
      // The rest of this turn is the member's own; then its program ends.
      else process.soon(end)
    })
    this.#off = () => {
      end()
      offStatus()
    }
  }

  #ended(process: Process): void {
    if (this.process !== process) return
    this.#tell({ kind: 'process', who: this.name, state: 'down' })
    this.#off()
    this.#off = () => {}
    this.#dieAfter = 0
    this.replica = undefined
    this.hub = undefined
  }

  /** A disk works in true time; what it has done is heard of in a turn of the process. */
  #afterDisk(process: Process, delayMs: number, action: () => void): void {
    this.machine.world.after(Math.max(1, Math.round(delayMs * US_PER_MS)), 'disk', () => {
      process.turn('input', action)
    })
  }

  #logger(): Logger {
    const { name: who } = this
    const say = (message: string, fields?: Record<string, unknown>): void => {
      this.lines?.(`${who} ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`)
    }
    return {
      info: (message, fields) => {
        if (message === 'leads')
          this.#tell({ kind: 'process', who, state: 'leader', text: `leads in term ${String(fields?.term)}` })
        if (message === 'leads no more') this.#tell({ kind: 'process', who, state: 'follower', text: message })
        say(message, fields)
      },
      warn: (message, fields) => {
        this.#tell({ kind: 'note', who, text: message })
        say(message, fields)
      },
      error: (message, fields) => {
        // The first line of a stack says what it was.
        const why =
          typeof fields?.error === 'string' ? `: ${fields.error.replace(/^\w*Error: /, '').split('\n', 1)[0]}` : ''
        this.#tell({ kind: 'note', who, text: `${message}${why}` })
        say(message, fields)
      },
    }
  }

  /** For pictures. */
  #tell(happening: Happening): void {
    this.machine.world.timeline.add(happening)
  }

  /** Hears of what the member logs. */
  lines: ((line: string) => void) | undefined
}

export function urlOf(name: string): string {
  return `http://${name}`
}

export function nameOf(url: string): string {
  return url.slice('http://'.length)
}

/** The founders of a cluster, as they tell of each other. */
export function foundersOf(names: readonly string[], nodes: readonly number[]): MemberInfo[] {
  return names.map((name, i) => ({ name, node: nodes[i] as number, peer: name, url: urlOf(name) }))
}
