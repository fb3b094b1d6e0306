import { InvalidError } from '@leasehold/core'
import type { Process, World } from '../world/index.js'
import type { Fault, Names } from './format.js'
import { seconds } from './program.js'
import type { LockSystem } from './system.js'

export interface FaultContext {
  readonly world: World
  readonly system: LockSystem
  readonly clients: ReadonlyMap<string, Process>
  /** Starts a machine's process again, if it is not the system's. */
  readonly start: (who: string) => void
}

/**
 * Plans all faults of a scenario, relative to second 0 at `startUs`. Returns what tells the points that no client has come
 * to: a fault that never was is a mistake in the scenario.
 * @throws InvalidError on names that do not exist
 */
export function planFaults(context: FaultContext, faults: readonly Fault[], startUs: number): () => readonly string[] {
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
function played(context: FaultContext, fault: Fault, named: string | undefined): void {
  try {
    apply(context, fault, named)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new InvalidError(`the fault ${fault.do} at ${fault.at}: ${why}`, { cause, hint: 'see docs/lab.md' })
  }
}

function apply(context: FaultContext, fault: Fault, named: string | undefined): void {
  const { world, system } = context
  const who = named === undefined ? '' : (system.resolve?.(named) ?? named)
  const say = (text: string, about = who) => world.timeline.add({ kind: 'fault', who: about, text })
  const machine = () => world.machineOf(who)
  switch (fault.do) {
    case 'pause':
      return pause(context, who, fault.for)
    case 'kill':
      say('is killed')
      down(context, who)
      if (system.members.includes(who) && system.kill) return system.kill(who)
      for (const process of [...machine().processes]) process.kill()
      return
    case 'powerOff':
      say('loses power')
      down(context, who)
      return machine().powerOff()
    case 'start':
      if (system.cluster?.members.get(who)?.running !== true) say('starts again')
      if (!tellsItself(context, who)) world.timeline.add({ kind: 'process', who, state: 'up' })
      return context.start(who)
    case 'suspend':
      say(`is suspended for ${fault.for} s: its monotonic clock stands still`)
      stopped(world, who, fault.for)
      return machine().suspend(seconds(fault.for))
    case 'stepClock':
      say(`its ${fault.clock} clock jumps by ${fault.by > 0 ? '+' : ''}${fault.by} s`)
      return machine().step(fault.clock, seconds(fault.by))
    case 'drift':
      say(`its clocks run ${fault.ppm / 10_000} % fast`)
      return machine().drift(fault.ppm)
    case 'system': {
      const action = system.actions?.[fault.action]
      if (action === undefined) throw new Error(`this system has no action ${fault.action}`)
      return action(fault)
    }
    default:
      return network(context, fault, who)
  }
}

function pause({ world, system }: FaultContext, who: string, forSeconds: number): void {
  world.timeline.add({ kind: 'fault', who, text: `is paused for ${forSeconds} s` })
  stopped(world, who, forSeconds)
  const name = system.resolve?.(who) ?? who
  for (const process of world.machineOf(name).processes) process.pause(seconds(forSeconds))
}

function stopped(world: World, who: string, forSeconds: number): void {
  world.timeline.add({ kind: 'process', who, state: 'paused' })
  world.after(seconds(forSeconds), 'note', () => world.timeline.add({ kind: 'process', who, state: 'running' }))
}

function down(context: FaultContext, who: string): void {
  if (!tellsItself(context, who)) context.world.timeline.add({ kind: 'process', who, state: 'down' })
}

/** Members of the production service say themselves when their processes begin and end. */
function tellsItself({ system }: FaultContext, who: string): boolean {
  return system.cluster !== undefined && system.members.includes(who)
}

type NetworkFault = Extract<Fault, { do: 'cut' | 'isolate' | 'hold' | 'clog' | 'forget' | 'link' }>

function network({ world, system }: FaultContext, fault: NetworkFault, who: string): void {
  const { network: net } = world
  const say = (text: string, about = '') => world.timeline.add({ kind: 'fault', who: about, text })
  // Asked for, so that a wrong name is an error and not a cut of nothing.
  const resolve = (name: string) => world.machineOf(system.resolve?.(name) ?? name).name
  const named = (names: Names) => list(names).map(resolve).join(', ')
  const pairs = (from: Names, to: Names) =>
    list(from).flatMap((a) =>
      list(to)
        .map((b) => [resolve(a), resolve(b)] as const)
        .filter(([x, y]) => x !== y),
    )
  const end = (undo: readonly (() => void)[], forSeconds: number | undefined) => {
    if (forSeconds === undefined) return
    world.after(seconds(forSeconds), 'heal', () => {
      for (const back of undo) back()
    })
  }
  switch (fault.do) {
    case 'cut': {
      say(`${named(fault.from)} ${fault.oneWay ? '→' : '↔'} ${named(fault.to)} cut${forWords(fault.for)}`)
      const cut = fault.oneWay === true ? net.cutOneWay.bind(net) : net.cut.bind(net)
      return end(
        pairs(fault.from, fault.to).map(([a, b]) => cut(a, b)),
        fault.for,
      )
    }
    case 'isolate':
      say(`is cut off from everybody${forWords(fault.for)}`, who)
      return end([net.isolate(resolve(who))], fault.for)
    case 'hold': {
      const { label } = fault
      say(
        `the network holds ${label ?? 'a message'} from ${named(fault.from)} to ${named(fault.to)} for ${fault.for} s`,
      )
      const matches = (text: string | undefined) => label === undefined || text?.includes(label) === true
      return net.link(resolve(fault.from), resolve(fault.to)).holdNext(seconds(fault.for), fault.count ?? 1, matches)
    }
    case 'clog':
      say(`${named(fault.from)} → ${named(fault.to)} clogged for ${fault.for} s`)
      return end([net.link(resolve(fault.from), resolve(fault.to)).clog()], fault.for)
    case 'forget':
      say(`${named(fault.from)} ↔ ${named(fault.to)}: their connections are forgotten on the way`)
      return net.forgetConnections(resolve(fault.from), resolve(fault.to))
    case 'link': {
      const profile = {
        ...(fault.delay === undefined ? {} : { minUs: seconds(fault.delay) }),
        ...(fault.lossPercent === undefined ? {} : { lossPpm: fault.lossPercent * 10_000 }),
      }
      say(
        `${named(fault.from)} → ${named(fault.to)} ${fault.delay === undefined ? 'is lossy' : `takes ${fault.delay} s`}${forWords(fault.for)}`,
      )
      return end(
        pairs(fault.from, fault.to).map(([a, b]) => net.link(a, b).change(profile)),
        fault.for,
      )
    }
  }
}

function forWords(seconds: number | undefined): string {
  return seconds === undefined ? '' : ` for ${seconds} s`
}

function list(names: Names): readonly string[] {
  return typeof names === 'string' ? [names] : names
}
