import type { HoldId } from '@leasehold/core'
import type { SimulatedClient } from '../cluster/simulated-client.js'
import type { Cluster } from '../cluster/cluster.js'
import type { EffectName, SimulatedMember } from '../cluster/simulated-member.js'
import { bitrot } from '../cluster/bitrot.js'
import { CALM } from '../world/network/link.js'
import type { World } from '../world/world.js'
import type { FaultOf, Weather } from '../faults/fault.js'
import { type FaultSite, inject, injectIntoDisk, type Undo } from '../faults/inject.js'
import { type DrawnFault, faultText } from './drawn-fault.js'
import { DiskRollback } from './disk-rollback.js'

const US_PER_MS = 1000
/** A member that has stopped by itself is started again after this time, as a supervisor does. */
const SUPERVISOR_MS = 1000
/** An operator looks at the membership this often while a member is being replaced. */
const OPERATOR_MS = 400

export interface FaultTargets {
  readonly world: World
  readonly cluster: Cluster
  readonly clients: ReadonlyMap<string, SimulatedClient>
  /** A client has been started again. */
  readonly restarted: (client: SimulatedClient) => void
  /** Members that may lose data. */
  readonly weak: readonly string[]
}

/** Faults of one member: of its process at an exact effect, of its disk, of its membership. */
type MemberFault = FaultOf<
  | 'effect'
  | 'killUnsynced'
  | 'slowDisk'
  | 'stuckDisk'
  | 'readOnlyDisk'
  | 'fullDisk'
  | 'failSync'
  | 'failWrite'
  | 'rot'
  | 'misdirect'
  | 'removeFolder'
  | 'setBack'
  | 'replace'
>

/** Carries a schedule of faults out, and undoes what is left of it at the end. */
export class FaultInjector {
  /** Members and clients that are meant to be down now. */
  readonly #down = new Map<string, number>()
  readonly #undo = new Set<() => void>()
  #healed = false
  readonly #replacing = new Set<string>()
  #isSetBack = false
  /** How often each kind has happened, and was not possible. */
  readonly counts = new Map<string, number>()

  readonly #site: FaultSite

  readonly #targets: FaultTargets

  constructor(targets: FaultTargets) {
    this.#targets = targets
    const { cluster, world } = targets
    this.#site = { world, member: (name) => cluster.members.get(name) }
    for (const member of targets.cluster.list) this.#supervise(member)
  }

  schedule(faults: readonly DrawnFault[]): void {
    for (const fault of faults) this.#targets.world.at(fault.atMs * US_PER_MS, fault.kind, () => this.#begin(fault))
  }

  /** Everything is repaired, except the disks of weak members that have lost data. Those in `broken` stay cut off. */
  heal(broken: readonly string[]): void {
    this.#healed = true
    for (const action of [...this.#undo]) action()
    this.#undo.clear()
    const { cluster, clients, world } = this.#targets
    for (const name of broken) world.network.isolate(name)
    for (const member of cluster.list) {
      member.disk.setStuck(false)
      Object.assign(member.disk.trouble, {
        failSync: false,
        failWrite: false,
        readOnly: false,
        slow: false,
        misdirect: false,
      })
      member.disk.capacity = Number.POSITIVE_INFINITY
      this.#down.delete(member.name)
      if (!member.process?.alive && !member.isDamaged) member.start()
    }
    for (const client of clients.values()) {
      this.#down.delete(client.name)
      if (!client.process.alive) this.#startClient(client)
    }
  }

  /** Started again, unless a fault keeps it down or it cannot start. */
  #supervise(member: SimulatedMember): void {
    const look = (): void => {
      if (!member.process?.alive && !member.isDamaged && !this.#down.has(member.name) && member.lives > 0)
        member.start()
      this.#targets.world.after(SUPERVISOR_MS * US_PER_MS, 'supervisor', look)
    }
    this.#targets.world.after(SUPERVISOR_MS * US_PER_MS, 'supervisor', look)
  }

  #begin(fault: DrawnFault): void {
    // Members that remember stay up until a disk that was set back is found out.
    if (this.#healed || this.#isSetBack) return
    const target = this.#resolve(fault)
    const to = 'to' in fault ? this.#named(fault.to) : ''
    if (target === undefined || to === undefined) return
    this.counts.set(fault.kind, (this.counts.get(fault.kind) ?? 0) + 1)
    this.#targets.world.timeline.add({ kind: 'fault', who: target, text: faultText(fault) })
    const end = this.#carryOut('to' in fault ? { ...fault, to } : fault, target)
    if (!end) return
    const once = (): void => {
      if (!this.#undo.delete(once)) return
      end()
    }
    this.#undo.add(once)
    this.#targets.world.after(fault.forMs * US_PER_MS, 'healed', once)
  }

  /** The machine that a fault hits; undefined: none at the moment, or one that is no longer in a shrunk plan. */
  #resolve(fault: DrawnFault): string | undefined {
    if (!('from' in fault || 'target' in fault)) return ''
    const target = this.#named('from' in fault ? fault.from : fault.target)
    const all = 'to' in fault ? [target, this.#named(fault.to)] : [target]
    return all.every((name) => this.#targets.world.machines.some((machine) => machine.name === name))
      ? target
      : undefined
  }

  #named(name: string): string | undefined {
    if (name === 'leader') return this.#targets.cluster.leader?.name
    return name === 'holder' ? this.#atWork()?.client : name
  }

  /** The oldest hold of a client that works on a counter. */
  #atWork(): { readonly id: HoldId; readonly client: string } | undefined {
    const holds = [...this.#targets.cluster.checks.log.state.machine.holds.values()]
    return holds.find(({ held }) => /^(unit|reg)/.test(held[0]?.name ?? ''))
  }

  /** Returns what ends the fault. */
  #carryOut(fault: DrawnFault, target: string): Undo {
    switch (fault.kind) {
      case 'power':
      case 'kill':
        return this.#takeDown(target, fault.kind)
      case 'blackout': {
        const ends = this.#targets.cluster.list.map((member) => this.#takeDown(member.name, 'power'))
        return () => {
          for (const end of ends) end()
        }
      }
      case 'pause':
        return inject(this.#site, { kind: 'pause', target })
      case 'suspend':
        if (!this.#targets.world.machineOf(target).on) return undefined
        this.#clocksOf(target, 'suspended')
        return inject(this.#site, { kind: 'suspend', target })
      case 'stepWall':
        if (fault.byMs < 0) this.#clocksOf(target, 'set back')
        return inject(this.#site, { kind: 'stepClock', clock: 'wall', target, byMs: fault.byMs })
      case 'drift':
        return inject(this.#site, { ...fault, target })
      case 'isolate':
        return inject(this.#site, { kind: 'isolate', target })
      case 'cut':
      case 'oneWay':
      case 'clog':
      case 'reset':
      case 'forget':
        return inject(this.#site, { kind: fault.kind, from: target, to: fault.to })
      case 'split':
      case 'ring':
        return inject(this.#site, fault)
      case 'weather':
        return this.#weather(fault.profile)
      case 'transfer':
        return this.#transfer(target)
      case 'steal':
        return this.#steal()
      default:
        return this.#ofMember(fault, this.#targets.cluster.member(target))
    }
  }

  /** A wall clock that is set back on a machine that is suspended besides hides the time from everybody on it. */
  #clocksOf(name: string, what: string): void {
    const client = this.#targets.clients.get(name)
    if (!client) return
    const seen = this.#clockFaults.get(name) ?? new Set()
    this.#clockFaults.set(name, seen.add(what))
    if (seen.size > 1) client.clocksBroken = true
  }

  readonly #clockFaults = new Map<string, Set<string>>()

  #ofMember(fault: MemberFault, member: SimulatedMember): Undo {
    switch (fault.kind) {
      case 'effect':
        return this.#dieAt(member, fault.nth, fault.what)
      case 'killUnsynced':
        return this.#killUnsynced(member, fault)
      case 'rot':
      case 'misdirect':
        return this.#damage(fault, member)
      case 'setBack':
        return this.#setBack(member)
      case 'replace':
        this.replace(member)
        return undefined
      case 'removeFolder':
        return this.#removeFolder(member)
      default:
        return injectIntoDisk(member, fault)
    }
  }

  #takeDown(name: string, how: 'power' | 'kill'): () => void {
    const { cluster, clients } = this.#targets
    this.#down.set(name, (this.#down.get(name) ?? 0) + 1)
    if (cluster.members.has(name) || clients.has(name)) inject(this.#site, { kind: how, target: name })
    return () => this.#bringUp(name)
  }

  #bringUp(name: string): void {
    const { cluster, clients } = this.#targets
    const left = (this.#down.get(name) ?? 1) - 1
    if (left > 0) {
      this.#down.set(name, left)
      return
    }
    this.#down.delete(name)
    const member = cluster.members.get(name)
    if (member && !member.isDamaged) member.start()
    const client = clients.get(name)
    if (client && !client.process.alive) this.#startClient(client)
  }

  #startClient(client: SimulatedClient): void {
    client.restart()
    this.#targets.restarted(client)
  }

  #dieAt(member: SimulatedMember, nth: number, what: EffectName | undefined): (() => void) | undefined {
    if (!member.running) return undefined
    let dead = false
    const dies = (): void => {
      dead = true
      this.#down.set(member.name, (this.#down.get(member.name) ?? 0) + 1)
      member.powerOff()
    }
    member.dieAtEffect(nth, dies, what)
    return () => {
      member.dieAtEffect(0, () => {})
      if (dead) this.#bringUp(member.name)
    }
  }

  #killUnsynced(member: SimulatedMember, fault: FaultOf<'killUnsynced'>): (() => void) | undefined {
    if (!member.running) return undefined
    let [isOver, isDown] = [false, false]
    const later = (ms: number, action: () => void): void => {
      this.#targets.world.after(ms * US_PER_MS, 'unsynced', () => {
        if (!isOver) action()
      })
    }
    const down = (): void => {
      if (!isDown) this.#down.set(member.name, (this.#down.get(member.name) ?? 0) + 1)
      isDown = true
    }
    const up = (): void => {
      if (isDown) this.#bringUp(member.name)
      isDown = false
    }
    const dies = (): void => {
      down()
      member.kill()
      later(fault.restartMs, up)
    }
    const first = (): void => {
      down()
      member.kill()
      later(fault.restartMs, () => {
        up()
        if (fault.againNth !== undefined) member.dieAtEffect(fault.againNth, dies)
        later(fault.powerAfterMs, () => {
          member.dieAtEffect(0, () => {})
          down()
          member.powerOff()
          later(fault.restartMs, up)
        })
      })
    }
    member.dieAtEffect(fault.nth, first, fault.what)
    return () => {
      isOver = true
      member.dieAtEffect(0, () => {})
      up()
    }
  }

  /** Storms may overlap: the last one that is not over counts. */
  #weather(profile: Weather): () => void {
    const one = { profile }
    this.#storms.push(one)
    this.#blow()
    return () => {
      this.#storms.splice(this.#storms.indexOf(one), 1)
      this.#blow()
    }
  }

  readonly #storms: { readonly profile: Weather }[] = []

  #blow(): void {
    const { machines, network } = this.#targets.world
    const { lossPpm, duplicatePpm, tailUs, reorderPpm, corruptPpm } = this.#storms.at(-1)?.profile ?? CALM
    for (const { name: from } of machines) {
      for (const { name: to } of machines) {
        if (from === to) continue
        Object.assign(network.link(from, to).profile, { lossPpm, duplicatePpm, tailUs, reorderPpm, corruptPpm })
      }
    }
  }

  /** Bits change while the power is off. Weak members only, and never more of them than a minority. */
  #damage(fault: FaultOf<'rot' | 'misdirect'>, member: SimulatedMember): (() => void) | undefined {
    if (!this.#targets.weak.includes(member.name)) return undefined
    const end = this.#takeDown(member.name, 'power')
    if (fault.kind === 'misdirect') member.disk.trouble.misdirect = true
    else if (fault.kind === 'rot') bitrot(member, fault.file)
    return () => {
      end()
      // A member that refuses to start on its disk is replaced, as its error recommends.
      this.#targets.world.after(3 * SUPERVISOR_MS * US_PER_MS, 'operator', () => {
        if (member.isDamaged) this.replace(member)
      })
    }
  }

  /** The member stops by itself when it notices, and is not started again on the empty path: it is replaced. */
  #removeFolder(member: SimulatedMember): (() => void) | undefined {
    const { name, disk } = member
    if (!this.#targets.weak.includes(name) || this.#replacing.has(name)) return undefined
    this.#down.set(name, (this.#down.get(name) ?? 0) + 1)
    disk.removeFolder()
    return () => {
      if (disk.trouble.removed) this.replace(member)
      this.#bringUp(name)
    }
  }

  #setBack(member: SimulatedMember): (() => void) | undefined {
    const { world, cluster, weak } = this.#targets
    if (!member.running || !weak.includes(member.name) || this.#replacing.has(member.name)) return undefined
    const done = (): void => {
      this.#isSetBack = false
      world.after(3 * SUPERVISOR_MS * US_PER_MS, 'operator', () => this.replace(member))
    }
    const setBack = new DiskRollback({ world, cluster, member, done })
    return () => {
      if (this.#healed || this.#isSetBack || this.#replacing.has(member.name) || !setBack.isKnown) return
      this.#isSetBack = true
      this.counts.set('set back', (this.counts.get('set back') ?? 0) + 1)
      setBack.carryOut()
    }
  }

  /** A member gets an empty disk, is removed, added as a new one and promoted: what an operator does, with patience. */
  replace(member: SimulatedMember): void {
    const { cluster, world, weak } = this.#targets
    const { name } = member
    if (!weak.includes(name) || this.#replacing.has(name)) return
    this.#replacing.add(name)
    this.#down.set(name, (this.#down.get(name) ?? 0) + 1)
    member.powerOff()
    const add = cluster.replaceDisk(name)
    let step: 'remove' | 'add' | 'start' | 'promote' = 'remove'
    let asking = false
    const ask = (change: Parameters<Cluster['change']>[0], then: () => void): void => {
      asking = true
      cluster.change(change, (problem) => {
        asking = false
        if (problem === undefined) then()
      })
    }
    const known = (): { role: string; node: number } | undefined => {
      return cluster.leader?.replica?.members.find((one) => one.name === name)
    }
    const look = (): void => {
      const standing = known()
      // The answer may have been lost: look at what is, not at what was said.
      if (step === 'remove' && cluster.leader && (!standing || standing.node === add.member.node)) step = 'add'
      // A leader that was deposed without knowing it may have told of a membership of long ago.
      if (step === 'add' && standing && standing.node !== add.member.node) step = 'remove'
      if (step === 'add' && standing?.node === add.member.node) step = 'start'
      if (step === 'start') {
        this.#bringUp(name)
        step = 'promote'
      }
      if (step === 'promote' && standing?.node === add.member.node && standing.role === 'voter') {
        this.#replacing.delete(name)
        return
      }
      if (!asking || world.nowUs % (5 * OPERATOR_MS * US_PER_MS) < OPERATOR_MS * US_PER_MS) {
        if (step === 'remove') ask({ kind: 'remove', name }, () => {})
        else if (step === 'add') ask(add, () => {})
        else ask({ kind: 'promote', name }, () => {})
      }
      world.after(OPERATOR_MS * US_PER_MS, 'operator', look)
    }
    look()
  }

  #transfer(name: string): undefined {
    const { leader } = this.#targets.cluster
    if (leader?.replica?.members.some((one) => one.name === name)) leader.replica.transferLeadership(name)
  }

  #steal(): undefined {
    const { leader, checks } = this.#targets.cluster
    const holds = [...checks.log.state.machine.holds.values()]
    const draw = this.#targets.world.stream('operator', 'steal')
    // In the middle of the work, or of anything.
    const working = draw.chance(500_000) ? this.#atWork() : undefined
    const hold = (working ?? holds[draw.below(Math.max(1, holds.length))])?.id
    if (hold === undefined) return undefined
    leader?.replica?.submit({ kind: 'steal', hold, actor: 'operator', reason: 'a fault of the schedule' }, () => {})
  }
}
