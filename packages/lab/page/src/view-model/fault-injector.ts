import { type FaultSite, inject, type Undo, type WorldFault } from '@leasehold/lab/faults/inject'
import type { Play, Step } from '@leasehold/lab/scenarios/index'
import type { Process } from '@leasehold/lab/world/index'
import type { Action } from './actions.js'
import { bothUnit } from './scenes.js'

const MS = 1000
/** Simulated seconds that a client works by itself, and rests. */
const WORK_SECONDS = { least: 1, more: 3 }
const REST_US = { least: 500_000, more: 2_000_000 }
/** How long a client that is told to take the lock waits for it, in milliseconds. */
const TAKE_WAIT_MS = 600_000

/** Carries out what the visitor requests, and remembers what can be undone. */
export class FaultInjector {
  /** Cuts by hand, by `A|B`. */
  readonly #cuts = new Map<string, Undo>()
  readonly #isolated = new Map<string, Undo>()
  readonly #site: FaultSite
  readonly #armed = new Map<string, () => void>()
  readonly loseRenewals = new Set<string>()
  readonly auto = new Set<string>()
  readonly drift = new Map<string, number>()

  readonly #play: Play
  readonly #say: (who: string, text: string) => void

  constructor(play: Play, say: (who: string, text: string) => void) {
    this.#play = play
    this.#say = say
    const { system, world } = play
    this.#site = { world, ...(system.member && { member: (name: string) => system.member?.(name) }) }
  }

  #inject(fault: WorldFault): void {
    inject(this.#site, fault)
  }

  /** Whether the next write of this client will be paused. */
  isArmed(who: string): boolean {
    return this.#armed.has(who)
  }

  isIsolated(who: string): boolean {
    return this.#isolated.has(who)
  }

  do(action: Action): void {
    const { who } = action
    switch (action.do) {
      case 'pause':
        return this.#pause(who)
      case 'resume':
        return this.#resume(who)
      case 'pauseInWrite':
        return this.#trap(who)
      case 'kill':
        return this.#kill(who)
      case 'start':
        return this.#start(who)
      case 'cut':
        return this.#cut(who, action.to)
      case 'heal':
        return this.#heal(who, action.to)
      case 'isolate':
        return this.#isolate(who)
      case 'rejoin':
        return this.#rejoin(who)
      case 'stepClock':
        this.#say(who, `its ${action.clock} clock jumps by ${action.by > 0 ? '+' : ''}${action.by} s`)
        return this.#inject({ kind: 'stepClock', target: who, clock: action.clock, byMs: action.by * MS })
      case 'drift':
        this.#say(who, action.ppm === 0 ? 'its clocks run true again' : `its clocks run ${action.ppm / 10_000} % fast`)
        this.drift.set(who, action.ppm)
        return this.#inject({ kind: 'drift', target: who, ppm: action.ppm })
      case 'loseRenewals':
        return this.#lose(who, action.on)
      case 'holdWrite':
        return this.#hold(who, action.for)
      case 'auto':
        return this.#setAuto(who, action.on)
      default:
        return this.#command(who, action.do)
    }
  }

  /** The processes of a machine that run. */
  processesOf(who: string): readonly Process[] {
    return [...this.#play.world.machineOf(who).processes]
  }

  isPaused(who: string): boolean {
    return this.processesOf(who).some((process) => process.paused)
  }

  #pause(who: string): void {
    const processes = this.processesOf(who)
    if (processes.length === 0 || this.isPaused(who)) return
    this.#say(who, 'is paused')
    this.#inject({ kind: 'pause', target: who })
  }

  /** Ends all pauses, those of the scenario as well. */
  #resume(who: string): void {
    if (!this.isPaused(who)) return
    this.#say(who, 'resumes')
    for (const process of this.processesOf(who)) while (process.paused) process.resume()
  }

  /** Paused where it hurts: after its last look at the hold, before the message leaves. */
  #trap(who: string): void {
    const process = this.#play.clients.get(who)
    if (process?.alive !== true || this.#armed.has(who)) return
    this.#say(who, 'will be paused in its next write, after its own check')
    const off = process.atNextPoint('in write', () => {
      this.#armed.delete(who)
      this.#say(who, 'is paused between its check and its write')
      process.pause()
    })
    this.#armed.set(who, off)
  }

  #kill(who: string): void {
    if (this.processesOf(who).length === 0) return
    this.#say(who, 'is killed')
    this.#armed.delete(who)
    this.#inject({ kind: 'kill', target: who })
  }

  #start(who: string): void {
    if (this.processesOf(who).length > 0) return
    this.#say(who, 'starts again')
    if (!this.#play.clients.has(who)) return this.#play.start(who)
    this.#play.restart(who)
    if (this.auto.has(who)) this.#goOn(who)
  }

  isCut(a: string, b: string): boolean {
    const { network } = this.#play.world
    return network.link(a, b).isCut || network.link(b, a).isCut
  }

  #cut(a: string, b: string): void {
    const key = keyOf(a, b)
    if (this.#cuts.has(key)) return
    this.#say('', `the link between ${a} and ${b} is cut`)
    this.#cuts.set(key, inject(this.#site, { kind: 'cut', from: a, to: b }))
  }

  #heal(a: string, b: string): void {
    const key = keyOf(a, b)
    const undo = this.#cuts.get(key)
    if (undo === undefined) return
    this.#say('', `the link between ${a} and ${b} is whole again`)
    this.#cuts.delete(key)
    undo()
  }

  /** Whether a cut was made by hand, and so can be healed by hand. */
  isOurCut(a: string, b: string): boolean {
    return this.#cuts.has(keyOf(a, b))
  }

  #isolate(who: string): void {
    if (this.#isolated.has(who)) return
    this.#say(who, 'is cut off from all others')
    this.#isolated.set(who, inject(this.#site, { kind: 'isolate', target: who }))
  }

  #rejoin(who: string): void {
    const undo = this.#isolated.get(who)
    if (undo === undefined) return
    this.#say(who, 'is connected to all others again')
    this.#isolated.delete(who)
    undo()
  }

  #lose(who: string, on: boolean): void {
    const { loses } = this.#play.system
    if (loses === undefined || this.loseRenewals.has(who) === on) return
    this.#say(who, on ? 'its renewals get lost from now on' : 'its renewals get through again')
    loses(who, 'renew', on)
    if (on) this.loseRenewals.add(who)
    else this.loseRenewals.delete(who)
  }

  #hold(who: string, forSeconds: number): void {
    this.#say(who, `the network will keep its next write for ${forSeconds} s`)
    for (const to of this.#play.resources.keys()) {
      this.#inject({ kind: 'hold', from: who, to, delayMs: forSeconds * MS, label: 'write' })
    }
  }

  #setAuto(who: string, on: boolean): void {
    if (this.auto.has(who) === on) return
    if (!on) {
      this.auto.delete(who)
      return
    }
    this.auto.add(who)
    this.#goOn(who)
  }

  /** Works by itself, unit after unit, for as long as it may. */
  #goOn(who: string): void {
    const process = this.#play.clients.get(who)
    if (process === undefined) return
    const draws = this.#play.world.stream('page.auto', who)
    const next = (): void => {
      const program = this.#play.programs.get(who)
      if (!this.auto.has(who) || program === undefined || !process.alive) return
      const work = WORK_SECONDS.least + (draws.below(1000) * WORK_SECONDS.more) / 1000
      const rest = REST_US.least + draws.below(REST_US.more)
      const again = (): void => void process.after(rest, next)
      if (program.doing !== undefined) return again()
      this.#run(process, who, this.#unit(work), again)
    }
    process.after(draws.below(REST_US.more), next)
  }

  #unit(work: number): Step[] {
    const [only, ...more] = [...this.#play.resources.keys()]
    if (more.length > 0) return bothUnit(work, TAKE_WAIT_MS)
    const wait = this.#play.system.cluster === undefined ? 60 : TAKE_WAIT_MS
    if (only === undefined) return [{ do: 'acquire', wait }, { do: 'work', for: work }, { do: 'release' }]
    return [{ do: 'acquire', wait }, { do: 'read' }, { do: 'work', for: work }, { do: 'write' }, { do: 'release' }]
  }

  /** One step by hand. */
  #command(who: string, what: 'take' | 'write' | 'release' | 'unit'): void {
    const process = this.#play.clients.get(who)
    const program = this.#play.programs.get(who)
    if (process?.alive !== true || program === undefined) return
    if (program.doing !== undefined) return this.#say(who, `is busy (${program.doing.do}): it cannot ${what} as well`)
    const wait = this.#play.system.cluster === undefined ? 60 : TAKE_WAIT_MS
    const resources = [...this.#play.resources.keys()]
    const reads = resources.map((resource) => ({ do: 'read' as const, resource }))
    if (what === 'take' && program.held !== undefined) return this.#say(who, 'has the lock already')
    if (what === 'release' && program.held === undefined) return this.#say(who, 'has nothing to release')
    const steps: Record<typeof what, Step[]> = {
      take: [{ do: 'acquire', wait }, ...reads],
      write: [{ do: 'write', resources }, ...reads],
      release: [{ do: 'release' }],
      unit: this.#unit(WORK_SECONDS.least),
    }
    this.#run(process, who, steps[what], () => {})
  }

  #run(process: Process, who: string, steps: readonly Step[], then: () => void): void {
    process.soon(() => {
      const program = this.#play.programs.get(who)
      if (program === undefined || program.doing !== undefined) return
      program.run(steps).then(then, (error: unknown) => {
        this.#play.world.uncaught(process, error)
        process.kill()
      })
    })
  }
}

function keyOf(a: string, b: string): string {
  return a < b ? `${a}|${b}` : `${b}|${a}`
}
