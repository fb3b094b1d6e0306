import { InvalidError } from '@leasehold/core'
import type { FaultOf, Names } from '../faults/fault.js'
import { type FaultSite, inject, listOf, type Undo } from '../faults/inject.js'
import type { Process, World } from '../world/index.js'
import { seconds } from './program.js'
import type { ScenarioFault, ScenarioNetworkFault, SystemActions } from './scenario-fault.js'
import type { LockSystem } from './system.js'

export interface FaultContext {
  readonly world: World
  readonly system: LockSystem
  readonly clients: ReadonlyMap<string, Process>
  /** Starts a machine's process again, if it is not the system's. */
  readonly start: (who: string) => void
}

const MS_PER_SECOND = 1000
const PPM_PER_PERCENT = 10_000

/**
 * Plans all faults of a scenario, relative to second 0 at `startUs`. Returns what tells the points that no client has come
 * to: a fault that never was is a mistake in the scenario.
 * @throws InvalidError on names that do not exist
 */
export function planFaults(
  context: FaultContext,
  faults: readonly ScenarioFault[],
  startUs: number,
): () => readonly string[] {
  const ahead = new Set<string>()
  for (const fault of faults) {
    const { at } = fault
    if (typeof at === 'number') {
      context.world.at(startUs + seconds(at), `fault ${fault.do}`, () => played(context, fault, fault.who))
      continue
    }
    const match = /^(\S+) ((?:before|in|after) [a-z]+)(?: #([0-9]+))?$/.exec(at)
    const process = context.clients.get(match?.[1] ?? '')
    if (match === null || process === undefined)
      throw new InvalidError(`no point of a client: ${at}`, { hint: POINTS_HINT })
    ahead.add(at)
    process.atPoint(match[2] as string, Number(match[3] ?? 1), () => {
      ahead.delete(at)
      played(context, fault, fault.who ?? process.name)
    })
  }
  return () => [...ahead]
}

const POINTS_HINT = 'a client of the scenario, and where in its program: "C1 in write"'

/** What is wrong here is wrong in the scenario. */
function played(context: FaultContext, fault: ScenarioFault, named: string | undefined): void {
  try {
    new Injection(context, named).apply(fault)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new InvalidError(`the fault ${fault.do} at ${fault.at}: ${why}`, { cause, hint: 'see docs/lab.md' })
  }
}

/** One fault of a scenario, translated to the shared vocabulary, told in the timeline, and ended in time. */
class Injection {
  readonly #context: FaultContext
  readonly #site: FaultSite
  readonly #who: string

  constructor(context: FaultContext, named: string | undefined) {
    this.#context = context
    const { system, world } = context
    this.#site = { world, ...(system.member && { member: (name: string) => system.member?.(name) }) }
    this.#who = named === undefined ? '' : this.#resolved(named)
  }

  apply(fault: ScenarioFault): void {
    const who = this.#who
    switch (fault.do) {
      case 'pause':
        this.#say(`is paused for ${fault.for} s`)
        this.#stopped(fault.for)
        inject(this.#site, { kind: 'pause', target: who, forMs: fault.for * MS_PER_SECOND })
        return
      case 'kill':
        this.#say('is killed')
        this.#down()
        inject(this.#site, { kind: 'kill', target: who })
        return
      case 'powerOff':
        this.#say('loses power')
        this.#down()
        inject(this.#site, { kind: 'power', target: who })
        return
      case 'start':
        return this.#start()
      case 'suspend':
        this.#say(`is suspended for ${fault.for} s: its monotonic clock stands still`)
        this.#stopped(fault.for)
        inject(this.#site, { kind: 'suspend', target: who, forMs: fault.for * MS_PER_SECOND })
        return
      case 'stepClock':
        this.#say(`its ${fault.clock} clock jumps by ${fault.by > 0 ? '+' : ''}${fault.by} s`)
        inject(this.#site, { kind: 'stepClock', target: who, clock: fault.clock, byMs: fault.by * MS_PER_SECOND })
        return
      case 'drift':
        this.#say(`its clocks run ${fault.ppm / PPM_PER_PERCENT} % fast`)
        inject(this.#site, { kind: 'drift', target: who, ppm: fault.ppm })
        return
      case 'system': {
        const actions: SystemActions = this.#context.system.actions ?? {}
        const action = actions[fault.action]
        if (action === undefined) throw new Error(`this system has no action ${fault.action}`)
        return (action as (one: typeof fault) => void)(fault)
      }
      default:
        return this.#network(fault)
    }
  }

  #network(fault: ScenarioNetworkFault): void {
    const { text, about, shared } = this.#translated(fault)
    this.#say(text, about ?? '')
    this.#end(inject(this.#site, shared), fault.do === 'hold' || fault.do === 'forget' ? undefined : fault.for)
  }

  #translated(fault: ScenarioNetworkFault): NetworkInjection {
    if (fault.do === 'isolate') {
      const text = `is cut off from all others${forWords(fault.for)}`
      return { text, about: this.#who, shared: { kind: 'isolate', target: this.#who } }
    }
    const [from, to] = [this.#named(fault.from), this.#named(fault.to)]
    const [source, target] = [from.join(', '), to.join(', ')]
    switch (fault.do) {
      case 'cut': {
        const text = `${source} ${fault.oneWay ? '→' : '↔'} ${target} cut${forWords(fault.for)}`
        return { text, shared: { kind: fault.oneWay === true ? 'oneWay' : 'cut', from, to } }
      }
      case 'hold': {
        const { label, count } = fault
        const text = `the network holds ${label ?? 'a message'} from ${source} to ${target} for ${fault.for} s`
        const more = { ...(label === undefined ? {} : { label }), ...(count === undefined ? {} : { count }) }
        return { text, shared: { kind: 'hold', from: source, to: target, delayMs: fault.for * MS_PER_SECOND, ...more } }
      }
      case 'clog':
        return {
          text: `${source} → ${target} clogged for ${fault.for} s`,
          shared: { kind: 'clog', from: source, to: target },
        }
      case 'forget':
        return {
          text: `${source} ↔ ${target}: their connections are forgotten on the way`,
          shared: { kind: 'forget', from: source, to: target },
        }
      case 'link': {
        const { delay, lossPercent } = fault
        const what = delay === undefined ? 'is lossy' : `takes ${delay} s`
        const profile = {
          ...(delay === undefined ? {} : { delayMs: delay * MS_PER_SECOND }),
          ...(lossPercent === undefined ? {} : { lossPpm: lossPercent * PPM_PER_PERCENT }),
        }
        return {
          text: `${source} → ${target} ${what}${forWords(fault.for)}`,
          shared: { kind: 'link', from, to, ...profile },
        }
      }
    }
  }

  #end(undo: Undo, forSeconds: number | undefined): void {
    if (forSeconds !== undefined) this.#context.world.after(seconds(forSeconds), 'heal', () => undo?.())
  }

  #start(): void {
    const { start, system, world } = this.#context
    const who = this.#who
    if (system.cluster?.members.get(who)?.running !== true) this.#say('starts again')
    if (!this.#isTold) world.timeline.add({ kind: 'process', who, state: 'up' })
    start(who)
  }

  #stopped(forSeconds: number): void {
    const { world } = this.#context
    const who = this.#who
    world.timeline.add({ kind: 'process', who, state: 'paused' })
    world.after(seconds(forSeconds), 'note', () => world.timeline.add({ kind: 'process', who, state: 'running' }))
  }

  #down(): void {
    if (!this.#isTold) this.#context.world.timeline.add({ kind: 'process', who: this.#who, state: 'down' })
  }

  /** Members of the production service report themselves when their processes begin and end. */
  get #isTold(): boolean {
    const { system } = this.#context
    return system.cluster !== undefined && system.members.includes(this.#who)
  }

  #say(text: string, about = this.#who): void {
    this.#context.world.timeline.add({ kind: 'fault', who: about, text })
  }

  #resolved(name: string): string {
    return this.#context.system.resolve?.(name) ?? name
  }

  /** The machines that are meant. A wrong name is an error, and not a fault of nothing. */
  #named(names: Names): string[] {
    return listOf(names).map((name) => this.#context.world.machineOf(this.#resolved(name)).name)
  }
}

interface NetworkInjection {
  readonly text: string
  readonly about?: string
  readonly shared: FaultOf<'cut' | 'oneWay' | 'isolate' | 'hold' | 'clog' | 'forget' | 'link'>
}

function forWords(seconds: number | undefined): string {
  return seconds === undefined ? '' : ` for ${seconds} s`
}
