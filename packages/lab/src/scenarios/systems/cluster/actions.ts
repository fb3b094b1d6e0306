import type { Limits } from '@leasehold/core'
import {
  type ClientRights,
  type Cluster,
  type EffectName,
  type FormatOf,
  bitrot,
  type BitrotTarget,
  type SimulatedMember,
  writeInFormat,
} from '../../../cluster/index.js'
import type { World } from '../../../world/index.js'
import type { Fault } from '../../format.js'
import { faultSentence } from './narration.js'

type Own = Fault & { readonly do: 'system' }

/**
 * Faults that only a cluster knows. `who` is a member or `leader`; `for` in seconds.
 *
 * - `disk` {trouble: failSync | failWrite | readOnly | slow | stuck | full | misdirect | removed, for?}; `full` after `room`
 *   more bytes.
 * - `rot` {file: log | snapshot | newestSnapshot | identity | mark}: one bit on the platter.
 * - `format` {file: log | snapshot | identity, format}: a later version has written that on the disk of a member that is down.
 * - `expire` {who}: the credentials of a client end. `allow` {who, acquire, read}: prefixes; what it may do from now on.
 * - `blackout` {for}: all members lose power. `down` {for, how: power | kill, powerAfter?}: with `powerAfter`, power is
 *   cut so long after its new start. `dieAtEffect` {nth, for, what?, how?, powerAfter?}; `what`: one of the names in
 *   `EffectName`, such as `written`, which leaves a part of a write, or with `how` kill a whole one that is not synced.
 * - `reset` {who}: the connections of a client break.
 * - `copyDisk` {who}: a copy of the disk is kept. `setBack` {who, for}: the power goes, and the copy is what it starts with.
 * - `transfer` {to}, `add`, `promote`, `remove`, `replaceDisk`, `configure` {level, limits}, `backup`,
 *   `restore` {epoch}, `foundAgain` (on emptied disks): what operators do.
 */
export function clusterActions(
  world: World,
  cluster: Cluster,
  resolve: (who: string) => string,
): Record<string, (fault: Own) => void> {
  const member = (fault: Own): SimulatedMember => cluster.member(resolve(fault.who ?? 'leader'))
  const later = (fault: Own, action: () => void): void => {
    if (typeof fault.for === 'number') world.after(Math.round(fault.for * 1_000_000), 'over', action)
  }
  const down = (one: SimulatedMember, fault: Own): void => {
    if (fault.how === 'kill') one.kill()
    else one.powerOff()
    later(fault, () => {
      one.start()
      const { powerAfter } = fault
      if (typeof powerAfter !== 'number') return
      world.after(Math.round(powerAfter * 1_000_000), 'power', () => {
        world.timeline.add({ kind: 'fault', who: one.name, text: 'loses power' })
        one.powerOff()
        later(fault, () => one.start())
      })
    })
  }
  const change = (what: Parameters<Cluster['change']>[0]): void => {
    cluster.change(what, (problem) => {
      const text = `${what.kind} ${'name' in what ? what.name : what.member.name}: ${problem ?? 'done'}`
      cluster.answers.push(text)
      world.timeline.add({ kind: 'note', text })
    })
  }
  let backup: Uint8Array | undefined
  const copies = new Map<string, ReadonlyMap<string, Uint8Array>>()
  const adds = new Map<string, Parameters<Cluster['change']>[0]>()
  const actions: Record<string, (fault: Own) => void> = {
    disk: (fault) => disk(member(fault), fault, (action) => later(fault, action)),
    rot: (fault) => bitrot(member(fault), (fault.file ?? 'log') as BitrotTarget),
    format: (fault) => {
      const one = member(fault)
      if (one.process?.alive) throw new Error(`${one.name} runs`)
      const file = writeInFormat(one.disk, fault.file as FormatOf, Number(fault.format))
      if (file === undefined) throw new Error(`${one.name} has no ${String(fault.file)}`)
      world.timeline.add({ kind: 'note', text: `${one.name}: ${file} is of format ${String(fault.format)}` })
    },
    expire: (fault) => cluster.access.expire(String(fault.who)),
    allow: (fault) => cluster.access.allow(String(fault.who), fault as ClientRights),
    blackout: (fault) => {
      for (const one of cluster.list) down(one, fault)
    },
    down: (fault) => down(member(fault), fault),
    dieAtEffect: (fault) => {
      const one = member(fault)
      const die = (): void => {
        world.timeline.add({ kind: 'fault', who: one.name, text: 'is down, right at that effect' })
        down(one, fault)
      }
      one.dieAtEffect(Number(fault.nth), die, fault.what as EffectName | undefined)
    },
    reset: (fault) => {
      for (const { name } of cluster.list) world.network.resetConnections(String(fault.who), name)
    },
    transfer: (fault) => cluster.leader?.replica?.transferLeadership(resolve(String(fault.to))),
    replaceDisk: (fault) => {
      const one = member(fault)
      one.powerOff()
      adds.set(one.name, cluster.replaceDisk(one.name))
    },
    copyDisk: (fault) => {
      const { name, disk: one } = member(fault)
      copies.set(name, one.files())
    },
    setBack: (fault) => {
      const one = member(fault)
      const copy = copies.get(one.name)
      if (!copy) throw new Error(`there is no copy of the disk of ${one.name}`)
      cluster.setBack(one.name, copy)
      later(fault, () => one.start())
    },
    add: (fault) => {
      const name = String(fault.who)
      const known = adds.get(name) ?? (cluster.members.has(name) ? undefined : cluster.addMachine(name))
      if (!known) throw new Error(`${name} is a member with a disk of its own`)
      adds.set(name, known)
      change(known)
      world.after(500_000, 'newcomer', () => cluster.member(name).start())
    },
    promote: (fault) => change({ kind: 'promote', name: String(fault.who) }),
    backup: () => {
      backup = cluster.backup()
    },
    restore: (fault) => {
      if (!backup) throw new Error('there is no backup to restore')
      const name = String(fault.who)
      for (const { name: other } of cluster.list) if (other !== name) adds.delete(other)
      cluster.restore(name, backup, Number(fault.epoch))
      for (const { name: other } of cluster.list) if (other !== name) adds.set(other, cluster.replaceDisk(other))
    },
    foundAgain: () => {
      adds.clear()
      cluster.foundAgain()
    },
    configure: (fault) => {
      const { level, limits } = fault as { level?: number; limits?: Partial<Limits> }
      const command = { kind: 'configure', ...(level ? { level } : {}), ...(limits ? { limits } : {}) } as const
      cluster.leader?.replica?.submit(command, (result) => {
        const text = `configure: ${result.kind === 'refused' ? result.code : result.kind}`
        cluster.answers.push(text)
        world.timeline.add({ kind: 'note', text })
      })
    },
    remove: (fault) => change({ kind: 'remove', name: resolve(String(fault.who)) }),
  }
  const told = (fault: Own, action: (fault: Own) => void): void => {
    const text = faultSentence(fault)
    if (text !== undefined) world.timeline.add({ kind: 'fault', who: aboutOf(fault, resolve), text })
    action(fault)
  }
  return Object.fromEntries(
    Object.entries(actions).map(([name, action]) => [name, (fault: Own) => told(fault, action)]),
  )
}

/** Members for whom no name is given are the leader; some of what is done is about nobody. */
function aboutOf(fault: Own, resolve: (who: string) => string): string {
  if (fault.action === 'transfer') return resolve(String(fault.to))
  if (['blackout', 'configure', 'backup', 'foundAgain'].includes(fault.action)) return ''
  return resolve(fault.who ?? 'leader')
}

function disk({ disk: one }: SimulatedMember, fault: Own, later: (action: () => void) => void): void {
  const { trouble } = one
  switch (fault.trouble) {
    case 'failSync':
      trouble.failSync = true
      return
    case 'failWrite':
      trouble.failWrite = true
      return
    case 'misdirect':
      trouble.misdirect = true
      return
    case 'removed':
      one.removeFolder()
      return
    case 'readOnly':
      trouble.readOnly = true
      return later(() => {
        trouble.readOnly = false
      })
    case 'slow':
      one.faults = { ...one.faults, slowMs: Number(fault.ms ?? 2000) }
      trouble.slow = true
      return later(() => {
        trouble.slow = false
      })
    case 'stuck':
      one.setStuck(true)
      return later(() => one.setStuck(false))
    case 'full':
      one.capacity = one.used + Number(fault.room ?? 0)
      return later(() => {
        one.capacity = Number.POSITIVE_INFINITY
      })
    default:
      throw new Error(`no trouble of a disk: ${String(fault.trouble)}`)
  }
}
