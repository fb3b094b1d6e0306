import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, type Locks } from 'leasehold'
import type { ClientProcesses } from './clients.js'
import type { ChaosCluster } from './cluster.js'
import type { ClusterMember, mountSmallDisk } from './member.js'
import { describeFault, type Fault, type LinkMode, type Storm } from './plan.js'
import type { Journal } from './work/journal.js'

export type SmallDisk = NonNullable<ReturnType<typeof mountSmallDisk>>

export interface FaultStage {
  readonly cluster: ChaosCluster
  readonly clients: ClientProcesses
  readonly journal: Journal
  /** Members whose disk can be filled. */
  readonly disks: ReadonlyMap<string, SmallDisk>
  say(line: string): void
}

const LEADER_LIMIT_MS = 5_000
const ACK_LIMIT_MS = 5_000
const SYNC_LIMIT_MS = 5_000
const ANSWER_LIMIT_MS = 10_000
const TRANSFER_MS = 1_000

/** Makes faults happen, and ends them. A member has one fault of its process at a time; links have theirs besides. */
export class Faults {
  /** How many of each kind were made. */
  readonly counts = new Map<string, number>()
  /** Members with an empty disk, which are no members any more. */
  readonly wiped = new Set<ClusterMember>()
  readonly #busy = new Set<ClusterMember>()
  #acks = 0

  readonly #stage: FaultStage

  constructor(stage: FaultStage) {
    this.#stage = stage
  }

  /** Resolves when all faults of the storm are over. */
  async play(storm: Storm): Promise<void> {
    await Promise.all(
      storm.faults.map(async (fault) => {
        await sleep(fault.afterMs)
        const what = await this.#make(fault)
        this.#stage.say(`  ${describeFault(fault)}${what === '' ? '' : ` (${what})`}`)
        if (!what.startsWith('left out')) this.counts.set(fault.kind, (this.counts.get(fault.kind) ?? 0) + 1)
      }),
    )
  }

  /** @returns what it came to, for the reader */
  async #make(fault: Fault): Promise<string> {
    const { cluster, clients } = this.#stage
    switch (fault.kind) {
      case 'kill':
      case 'pause':
      case 'restart': {
        const member = await this.#find(fault.target)
        return await this.#withMember(member, (one) => this.#process(fault.kind, one, fault.forMs))
      }
      case 'killUnsynced':
        return await this.#withMember(await this.#find(fault.target), (one) => this.#killUnsynced(one, fault.forMs))
      case 'killAfterAck':
        return await this.#withMember(await this.#find(fault.target), (one) => this.#killAfterAck(one, fault.forMs))
      case 'killAll':
        return await this.#killAll(fault.forMs)
      case 'replace':
        return await this.#replace(fault.target, fault.forMs)
      case 'transfer': {
        const member = await this.#find(fault.target)
        return member === undefined ? 'left out' : ((await cluster.change('transfer', member.name)) ?? member.name)
      }
      case 'isolate':
      case 'link':
      case 'split':
        return await this.#links(fault)
      case 'fullDisk':
        return await this.#fullDisk(fault.forMs)
      case 'pauseClients':
        clients.pauseAll()
        await sleep(fault.forMs)
        clients.resumeAll()
        return ''
      case 'killClient':
        await clients.killOne()
        return ''
    }
  }

  async #links(fault: Extract<Fault, { readonly kind: 'isolate' | 'link' | 'split' }>): Promise<string> {
    switch (fault.kind) {
      case 'isolate': {
        const member = await this.#find(fault.target)
        if (member === undefined) return 'left out'
        const others = this.#stage.cluster.members.filter((one) => one !== member)
        const pairs = others.flatMap((other): [string, string][] => [
          ...(fault.ways === 'out' ? [] : [[other.name, member.name] as [string, string]]),
          ...(fault.ways === 'in' ? [] : [[member.name, other.name] as [string, string]]),
        ])
        await this.#disturb(pairs, fault.mode, fault.forMs)
        return member.name
      }
      case 'link': {
        const { from, to, twoWay, mode, forMs } = fault
        await this.#disturb(
          twoWay
            ? [
                [from, to],
                [to, from],
              ]
            : [[from, to]],
          mode,
          forMs,
        )
        return ''
      }
      case 'split': {
        const across = fault.left.flatMap((a) =>
          fault.right.flatMap((b): [string, string][] => [
            [a, b],
            [b, a],
          ]),
        )
        await this.#disturb(across, 'cut', fault.forMs)
        return ''
      }
    }
  }

  async #process(kind: 'kill' | 'pause' | 'restart', member: ClusterMember, forMs: number): Promise<string> {
    if (kind === 'pause') {
      member.pause()
      await sleep(forMs)
      member.resume()
      return member.name
    }
    if (kind === 'restart') {
      const clean = await member.end()
      member.start()
      return clean ? member.name : `${member.name}, killed because it did not stop by itself`
    }
    await member.kill()
    await sleep(forMs)
    member.start()
    return member.name
  }

  /** The next sync of the member hangs, and the member is killed within it: what was written can only be read. */
  async #killUnsynced(member: ClusterMember, forMs: number): Promise<string> {
    const what = await member.killWithinSync(SYNC_LIMIT_MS)
    await sleep(forMs / 2)
    member.start()
    return `${member.name}, ${what}`
  }

  /** The leader acknowledges a hold that outlives everything, and dies at once. */
  async #killAfterAck(leader: ClusterMember, forMs: number): Promise<string> {
    const locks = createLocks(leader.url, { clientName: 'acknowledged', connectTimeout: ACK_LIMIT_MS })
    const lock = `kept/ack-${++this.#acks}`
    try {
      const hold = await acquireInTime(locks, lock)
      leader.killNow()
      this.#stage.journal.note({ note: 'kept', lock, id: String(hold.id) })
    } catch (error) {
      return `left out: ${error instanceof Error ? error.message : String(error)}`
    } finally {
      void locks.close().catch(() => {})
    }
    await leader.kill()
    await sleep(forMs)
    leader.start()
    return leader.name
  }

  async #killAll(forMs: number): Promise<string> {
    const members = this.#stage.cluster.members.filter(
      (one) => one.running && !this.#busy.has(one) && !this.wiped.has(one),
    )
    for (const member of members) this.#busy.add(member)
    for (const member of members) member.killNow()
    await Promise.all(members.map((member) => member.kill()))
    await sleep(forMs / 2)
    for (const member of members) {
      member.start()
      this.#busy.delete(member)
    }
    return members.map(({ name }) => name).join(' ')
  }

  async #replace(target: string, forMs: number): Promise<string> {
    if (this.wiped.size > 0) return 'left out: another disk is being replaced'
    return await this.#withMember(await this.#find(target), async (member) => {
      this.wiped.add(member)
      await member.kill()
      member.wipe()
      await sleep(forMs)
      member.start()
      return member.name
    })
  }

  /** A member that runs must go on with a full disk; starting on one is refused, so that nothing else happens to it meanwhile. */
  async #fullDisk(forMs: number): Promise<string> {
    const { cluster, disks } = this.#stage
    const [found] = disks
    if (found === undefined) return 'left out: no disk that can be filled'
    const [name, disk] = found
    return await this.#withMember(cluster.memberNamed(name), async (member) => {
      if (!(await member.answers(ANSWER_LIMIT_MS))) return `left out: ${name} is not there`
      await cluster.change('transfer', name)
      await sleep(TRANSFER_MS)
      disk.fill()
      await sleep(forMs)
      const leader = await cluster.leaderNow()
      disk.empty()
      return `${name}, led by ${leader?.name ?? 'nobody'}`
    })
  }

  async #disturb(pairs: readonly [string, string][], mode: LinkMode, forMs: number): Promise<void> {
    const { links } = this.#stage.cluster
    for (const [from, to] of pairs) links.set(from, to, mode)
    await sleep(forMs)
    for (const [from, to] of pairs) links.set(from, to, 'open')
  }

  async #withMember(
    member: ClusterMember | undefined,
    act: (member: ClusterMember) => Promise<string>,
  ): Promise<string> {
    if (member === undefined || this.#busy.has(member) || this.wiped.has(member) || !member.running) return 'left out'
    this.#busy.add(member)
    try {
      return await act(member)
    } finally {
      this.#busy.delete(member)
    }
  }

  async #find(target: string): Promise<ClusterMember | undefined> {
    const { cluster } = this.#stage
    if (target !== 'leader' && target !== 'follower') return cluster.memberNamed(target)
    const end = performance.now() + LEADER_LIMIT_MS
    let leader = await cluster.leaderNow()
    while (leader === undefined && performance.now() < end) leader = await cluster.leaderNow()
    if (target === 'leader') return leader
    return cluster.members.find((one) => one !== leader && one.running && !this.#busy.has(one) && !this.wiped.has(one))
  }
}

async function acquireInTime(locks: Locks, lock: string) {
  return await locks.acquire(lock, { persistent: true, wait: ACK_LIMIT_MS })
}
