import type { SimulatedMember } from '../cluster/simulated-member.js'
import type { World } from '../world/index.js'
import type { DiskFault, FaultOf, Names } from './fault.js'

const US_PER_MS = 1000

/** Where faults are injected. */
export interface FaultSite {
  readonly world: World
  /** The production member on this machine, if there is one: killing it leaves a disk with unsynced writes. */
  member?(name: string): SimulatedMember | undefined
}

/** Ends a fault; undefined: it ends by itself, or has nothing to end. */
export type Undo = (() => void) | undefined

/** Faults that concern machines and links alone. Roles in them are resolved already. */
export type WorldFault = FaultOf<
  | 'power'
  | 'kill'
  | 'pause'
  | 'suspend'
  | 'cut'
  | 'oneWay'
  | 'isolate'
  | 'clog'
  | 'hold'
  | 'reset'
  | 'forget'
  | 'link'
  | 'split'
  | 'ring'
  | 'stepClock'
  | 'drift'
>

/**
 * Injects a fault of machines or links, now. Scenarios, the fuzzer and the page call this; each has its own schedule.
 * @throws Error if a machine does not exist
 */
export function inject(site: FaultSite, fault: WorldFault): Undo {
  const { world } = site
  switch (fault.kind) {
    case 'power':
      world.machineOf(fault.target).powerOff()
      return undefined
    case 'kill':
      kill(site, fault.target)
      return undefined
    case 'pause':
      return pause(world, fault)
    case 'suspend': {
      const machine = world.machineOf(fault.target)
      machine.suspend(fault.forMs === undefined ? undefined : usOf(fault.forMs))
      return fault.forMs === undefined ? () => machine.wake() : undefined
    }
    case 'stepClock':
      world.machineOf(fault.target).step(fault.clock, usOf(fault.byMs))
      return undefined
    case 'drift':
      world.machineOf(fault.target).drift(fault.ppm)
      return undefined
    default:
      return injectIntoNetwork(world, fault)
  }
}

function kill({ world, member }: FaultSite, name: string): void {
  const production = member?.(name)
  if (production) return production.kill()
  for (const process of [...world.machineOf(name).processes]) process.kill()
}

function pause(world: World, { target, forMs }: FaultOf<'pause'>): Undo {
  const processes = [...world.machineOf(target).processes]
  for (const process of processes) process.pause(forMs === undefined ? undefined : usOf(forMs))
  if (forMs !== undefined || processes.length === 0) return undefined
  return () => {
    for (const process of processes) process.resume()
  }
}

type LinkFault = FaultOf<
  'cut' | 'oneWay' | 'isolate' | 'clog' | 'hold' | 'reset' | 'forget' | 'link' | 'split' | 'ring'
>

function injectIntoNetwork({ network }: World, fault: LinkFault): Undo {
  switch (fault.kind) {
    case 'cut':
      return forPairs(fault.from, fault.to, (a, b) => network.cut(a, b))
    case 'oneWay':
      return forPairs(fault.from, fault.to, (a, b) => network.cutOneWay(a, b))
    case 'clog':
      return forPairs(fault.from, fault.to, (a, b) => network.link(a, b).clog())
    case 'link': {
      const profile = {
        ...(fault.delayMs === undefined ? {} : { minUs: usOf(fault.delayMs) }),
        ...(fault.lossPpm === undefined ? {} : { lossPpm: fault.lossPpm }),
      }
      return forPairs(fault.from, fault.to, (a, b) => network.link(a, b).change(profile))
    }
    case 'isolate':
      return network.isolate(fault.target)
    case 'split':
      return network.split(fault.left, fault.right)
    case 'ring':
      return network.ring(fault.names)
    case 'hold': {
      const { from, to, delayMs, count = 1, label } = fault
      const matches = (text: string | undefined): boolean => label === undefined || text?.includes(label) === true
      network.link(from, to).holdNext(usOf(delayMs), count, matches)
      return undefined
    }
    case 'reset':
      network.resetConnections(fault.from, fault.to)
      return undefined
    case 'forget':
      network.forgetConnections(fault.from, fault.to)
      return undefined
  }
}

/** A machine is never cut off from itself. */
function forPairs(from: Names, to: Names, act: (from: string, to: string) => () => void): Undo {
  const undos = listOf(from).flatMap((a) =>
    listOf(to)
      .filter((b) => a !== b)
      .map((b) => act(a, b)),
  )
  if (undos.length === 0) return undefined
  return () => {
    for (const undo of undos) undo()
  }
}

export function listOf(names: Names): readonly string[] {
  return typeof names === 'string' ? [names] : names
}

function usOf(ms: number): number {
  return Math.round(ms * US_PER_MS)
}

/** Faults that a disk shows while it is in use. */
export type DiskTroubleFault = Exclude<DiskFault, { readonly kind: 'rot' | 'setBack' | 'replace' }>

/** Injects a fault of a member's disk, now. */
export function injectIntoDisk({ disk }: SimulatedMember, fault: DiskTroubleFault): Undo {
  switch (fault.kind) {
    case 'slowDisk':
      disk.faults = { ...disk.faults, slowMs: fault.syncMs }
      disk.trouble.slow = true
      return () => {
        disk.trouble.slow = false
      }
    case 'stuckDisk':
      disk.setStuck(true)
      return () => disk.setStuck(false)
    case 'fullDisk':
      disk.capacity = disk.used + (fault.room ?? 0)
      return () => {
        disk.capacity = Number.POSITIVE_INFINITY
      }
    case 'readOnlyDisk':
      disk.trouble.readOnly = true
      return () => {
        disk.trouble.readOnly = false
      }
    case 'failSync':
    case 'failWrite':
    case 'misdirect':
      disk.trouble[fault.kind] = true
      return undefined
    case 'removeFolder':
      disk.removeFolder()
      return undefined
  }
}
