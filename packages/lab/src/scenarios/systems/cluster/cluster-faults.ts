import type { Command } from '@leasehold/core'
import { bitrot, type Cluster, type SimulatedMember, writeInFormat } from '../../../cluster/index.js'
import { type DiskTroubleFault, injectIntoDisk } from '../../../faults/inject.js'
import type { World } from '../../../world/index.js'
import { seconds } from '../../program.js'
import type { DiskTroubleSpec, SystemActions, SystemFault, SystemFaultOf } from '../../scenario-fault.js'
import { faultSentence } from './narration.js'

type Change = Parameters<Cluster['change']>[0]
type Own = SystemFault & { readonly at: number | string; readonly who?: string }

/** How long after it was added a member starts. */
const NEWCOMER_US = 500_000
const SLOW_SYNC_MS = 2000

/** The faults that only a cluster has, each told in the timeline before it is carried out. */
export function clusterActions(world: World, cluster: Cluster, resolve: (who: string) => string): SystemActions {
  const faults = new ClusterFaults(world, cluster, resolve)
  const told = (fault: Own): void => {
    const text = faultSentence(fault)
    if (text !== undefined) world.timeline.add({ kind: 'fault', who: aboutOf(fault, resolve), text })
  }
  const actions: SystemActions = {
    ...faults.ofMachines,
    ...faults.ofClients,
    ...faults.ofOperators,
  }
  return Object.fromEntries(
    Object.entries(actions).map(([name, action]) => [
      name,
      (fault: Own) => {
        told(fault)
        ;(action as (one: Own) => void)(fault)
      },
    ]),
  )
}

class ClusterFaults {
  readonly #world: World
  readonly #cluster: Cluster
  readonly #resolve: (who: string) => string
  #backup: Uint8Array | undefined
  readonly #copies = new Map<string, ReadonlyMap<string, Uint8Array>>()
  /** Members that are to be added, by name. */
  readonly #adds = new Map<string, Change>()

  constructor(world: World, cluster: Cluster, resolve: (who: string) => string) {
    this.#world = world
    this.#cluster = cluster
    this.#resolve = resolve
  }

  /** Power, processes and disks. */
  readonly ofMachines: SystemActions = {
    disk: (fault) => {
      const one = this.#member(fault)
      const undo = injectIntoDisk(one, diskFault(fault, one.name))
      if (undo) this.#later(fault, undo)
    },
    rot: (fault) => bitrot(this.#member(fault), fault.file ?? 'log'),
    format: (fault) => this.#format(fault),
    blackout: (fault) => {
      for (const one of this.#cluster.list) this.#down(one, fault)
    },
    down: (fault) => this.#down(this.#member(fault), fault),
    dieAtEffect: (fault) => {
      const one = this.#member(fault)
      const die = (): void => {
        this.#world.timeline.add({ kind: 'fault', who: one.name, text: 'is down, right at that effect' })
        this.#down(one, fault)
      }
      one.dieAtEffect(fault.nth, die, fault.what)
    },
    replaceDisk: (fault) => {
      const one = this.#member(fault)
      one.powerOff()
      this.#adds.set(one.name, this.#cluster.replaceDisk(one.name))
    },
    copyDisk: (fault) => {
      const { name, disk } = this.#member(fault)
      this.#copies.set(name, disk.files())
    },
    setBack: (fault) => {
      const one = this.#member(fault)
      const copy = this.#copies.get(one.name)
      if (!copy) throw new Error(`there is no copy of the disk of ${one.name}`)
      this.#cluster.setBack(one.name, copy)
      this.#later(fault, () => one.start())
    },
  }

  /** Connections and rights of clients. */
  readonly ofClients: SystemActions = {
    expire: (fault) => this.#cluster.access.expire(nameOf(fault)),
    allow: (fault) => this.#cluster.access.allow(nameOf(fault), fault),
    reset: (fault) => {
      for (const { name } of this.#cluster.list) this.#world.network.resetConnections(nameOf(fault), name)
    },
  }

  readonly ofOperators: SystemActions = {
    transfer: (fault) => this.#cluster.leader?.replica?.transferLeadership(this.#resolve(fault.to)),
    add: (fault) => {
      const { members } = this.#cluster
      const name = nameOf(fault)
      const known = this.#adds.get(name) ?? (members.has(name) ? undefined : this.#cluster.addMachine(name))
      if (!known) throw new Error(`${name} is a member with a disk of its own`)
      this.#adds.set(name, known)
      this.#change(known)
      this.#world.after(NEWCOMER_US, 'newcomer', () => this.#cluster.member(name).start())
    },
    promote: (fault) => this.#change({ kind: 'promote', name: nameOf(fault) }),
    remove: (fault) => this.#change({ kind: 'remove', name: this.#resolve(nameOf(fault)) }),
    configure: (fault) => this.#configure(fault),
    backup: () => {
      this.#backup = this.#cluster.backup()
    },
    restore: (fault) => this.#restore(nameOf(fault), Number(fault.epoch)),
    foundAgain: () => {
      this.#adds.clear()
      this.#cluster.foundAgain()
    },
  }

  #member(fault: Own): SimulatedMember {
    return this.#cluster.member(this.#resolve(fault.who ?? 'leader'))
  }

  #later(fault: { readonly for?: number }, action: () => void): void {
    if (typeof fault.for === 'number') this.#world.after(seconds(fault.for), 'over', action)
  }

  #down(one: SimulatedMember, fault: SystemFaultOf<'blackout' | 'down' | 'dieAtEffect'>): void {
    if (fault.how === 'kill') one.kill()
    else one.powerOff()
    this.#later(fault, () => {
      one.start()
      const { powerAfter } = fault
      if (typeof powerAfter !== 'number') return
      this.#world.after(seconds(powerAfter), 'power', () => {
        this.#world.timeline.add({ kind: 'fault', who: one.name, text: 'loses power' })
        one.powerOff()
        this.#later(fault, () => one.start())
      })
    })
  }

  #format(fault: SystemFaultOf<'format'>): void {
    const one = this.#member(fault)
    if (one.process?.alive) throw new Error(`${one.name} runs`)
    const file = writeInFormat(one.disk, fault.file, fault.format)
    if (file === undefined) throw new Error(`${one.name} has no ${fault.file}`)
    this.#note(`${one.name}: ${file} is of format ${fault.format}`)
  }

  #change(what: Change): void {
    this.#cluster.change(what, (problem) => {
      this.#answer(`${what.kind} ${'name' in what ? what.name : what.member.name}: ${problem ?? 'done'}`)
    })
  }

  #configure({ level, limits }: SystemFaultOf<'configure'>): void {
    const command = { kind: 'configure', ...(level ? { level } : {}), ...(limits ? { limits } : {}) } as const
    this.#cluster.leader?.replica?.submit(command satisfies Command, (result) => {
      this.#answer(`configure: ${result.kind === 'refused' ? result.code : result.kind}`)
    })
  }

  #restore(name: string, epoch: number): void {
    if (!this.#backup) throw new Error('there is no backup to restore')
    const others = (): string[] => this.#cluster.list.map((one) => one.name).filter((other) => other !== name)
    for (const other of others()) this.#adds.delete(other)
    this.#cluster.restore(name, this.#backup, epoch)
    for (const other of others()) this.#adds.set(other, this.#cluster.replaceDisk(other))
  }

  #answer(text: string): void {
    this.#cluster.answers.push(text)
    this.#note(text)
  }

  #note(text: string): void {
    this.#world.timeline.add({ kind: 'note', text })
  }
}

function nameOf(fault: Own): string {
  return String(fault.who)
}

/** Without a name the fault is about the leader; some faults are about no machine. */
function aboutOf(fault: Own, resolve: (who: string) => string): string {
  if (fault.action === 'transfer') return resolve(fault.to)
  if (['blackout', 'configure', 'backup', 'foundAgain'].includes(fault.action)) return ''
  return resolve(fault.who ?? 'leader')
}

/** The trouble of a scenario file, in the shared vocabulary. */
function diskFault(spec: DiskTroubleSpec, target: string): DiskTroubleFault {
  switch (spec.trouble) {
    case 'failSync':
    case 'failWrite':
    case 'misdirect':
      return { kind: spec.trouble, target }
    case 'removed':
      return { kind: 'removeFolder', target }
    case 'readOnly':
      return { kind: 'readOnlyDisk', target }
    case 'stuck':
      return { kind: 'stuckDisk', target }
    case 'slow':
      return { kind: 'slowDisk', target, syncMs: spec.ms ?? SLOW_SYNC_MS }
    case 'full':
      return { kind: 'fullDisk', target, room: spec.room ?? 0 }
    default:
      throw new Error(`no trouble of a disk: ${String((spec as { trouble: unknown }).trouble)}`)
  }
}
