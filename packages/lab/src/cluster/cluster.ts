import { floorAt, LEVEL_MAX, type Limits, LockState, type Serial } from '@leasehold/core'
import {
  type BootstrapCluster,
  inspect,
  type MembershipChange,
  mintCluster,
  mintNode,
  type Replica,
  type StreamHub,
} from '@leasehold/replica'
import type { Canonical } from '../checkers/committed-log.js'
import { ClusterCheckers } from '../checkers/cluster-checkers.js'
import type { TokenPairs } from '../checkers/token-pairs.js'
import { serveStreams, type StreamObserver } from '../world/bindings/connector.js'
import { worldWallMs } from '../world/bindings/replica-platform.js'
import type { MachineOptions } from '../world/machine.js'
import type { Process } from '../world/process.js'
import type { World } from '../world/world.js'
import { Access } from './access.js'
import { LeaseObserver } from './lease-observer.js'
import { foundersOf, type MemberSettings, SimulatedMember } from './simulated-member.js'
import { peerNetwork } from './peer-network.js'
import { restoreTo } from './restore.js'

export interface ClusterOptions {
  /** Names of the founders; default `N1`, `N2`, `N3`. */
  readonly names?: readonly string[]
  readonly epoch?: number
  /** Another text for each cluster of one world, so that they have other ids. */
  readonly identity?: string
  readonly limits?: Partial<Limits>
  readonly settings?: MemberSettings
  /** Tokens of another service that this one follows. */
  readonly pairs?: TokenPairs
  /** Whether members check once a second that their folder is still there; default false. */
  readonly watchFolders?: boolean
  /** Clocks of the members' machines. */
  readonly machines?: (name: string) => MachineOptions
  readonly onEntry?: (canonical: Canonical) => void
  /** Hears of what members log. */
  readonly log?: (line: string) => void
}

/**
 * Small files and short histories, so that a run of a minute sees them roll, be cut and be sent; and each element of a snapshot
 * in a slice of its own, so that much happens while one is made.
 */
export const LAB_SETTINGS: MemberSettings = {
  segmentBytes: 256 * 1024,
  spareSegments: 1,
  reserveBytes: 0,
  snapshotBytes: 32 * 1024,
  historyEvents: 2_000,
  compareEvery: 256,
  snapshotSliceBytes: 1,
  // Blocking takes no time here, however slow or stuck the disk. The explorer draws it all the same.
  blockingWrites: false,
  // Pictures and traces speak of tokens like 33.
  clockFloors: false,
}

/** Members that form one service, with everything that is checked about them at every step. */
export class Cluster {
  readonly members = new Map<string, SimulatedMember>()
  readonly checks: ClusterCheckers
  /** What clients may do; at first every client may do everything. */
  readonly access = new Access()
  readonly epoch: number
  /** What came of changes that were asked for, for reports. */
  readonly answers: string[] = []
  #record: Required<Omit<BootstrapCluster, 'node'>>

  readonly #options: ClusterOptions

  constructor(
    readonly world: World,
    options: ClusterOptions = {},
  ) {
    this.#options = options
    const { names = ['N1', 'N2', 'N3'], epoch = 1, limits, onEntry, pairs } = options
    this.epoch = epoch
    this.#record = this.#mint(names)
    this.checks = new ClusterCheckers({
      nowMs: () => world.nowUs / 1000,
      epoch,
      founding: this.#foundingState(),
      ...(limits ? { limits } : {}),
      ...(pairs ? { pairs } : {}),
      ...(onEntry ? { onEntry } : {}),
    })
    for (const name of names) this.#make(name)
  }

  get list(): readonly SimulatedMember[] {
    return [...this.members.values()]
  }

  get urls(): readonly string[] {
    return this.list.map((member) => member.url)
  }

  /** The running member that leads in the highest term. */
  get leader(): SimulatedMember | undefined {
    const leaders = this.list.filter((member) => member.leads)
    return leaders.sort((a, b) => termOf(b) - termOf(a))[0]
  }

  member(name: string): SimulatedMember {
    const member = this.members.get(name)
    if (!member) throw new Error(`no member ${name}`)
    return member
  }

  start(): void {
    for (const member of this.list) member.start()
  }

  /** Asks the leader for a change of the membership. `done` gets an error text, or undefined. Without a leader: at once. */
  change(change: MembershipChange, done: (problem: string | undefined) => void): void {
    const { leader } = this
    if (!leader?.replica) return done('no leader')
    leader.replica.changeMembership(change, (result) => {
      done(result.kind === 'changed' ? undefined : `${result.code}: ${result.message}`)
    })
  }

  /** Replaces the disk of a member that does not run by an empty one: it is another member afterwards, in need of `add`. */
  replaceDisk(name: string): MembershipChange & { kind: 'add' } {
    const member = this.member(name)
    if (member.process?.alive) throw new Error(`${name} runs`)
    member.wipe()
    return this.#newcomer(name)
  }

  /** Puts an older copy of its disk in the place of what a member has. It is off afterwards. */
  setBack(name: string, files: ReadonlyMap<string, Uint8Array>): void {
    const member = this.member(name)
    member.powerOff()
    member.disk.setBack(files)
    const node = member.founding?.node
    if (node !== undefined) this.checks.promises.setBack(node)
  }

  /** A further member, with an empty disk. Start it after it was added. */
  addMachine(name: string): MembershipChange & { kind: 'add' } {
    this.#make(name)
    return this.#newcomer(name)
  }

  /** The state as a backup has it. */
  backup(): Uint8Array {
    return this.checks.log.state.snapshot()
  }

  /**
   * Restores a backup: `name` alone has it, under a higher epoch and as another cluster. The other disks are empty, and
   * their members are added as new ones afterwards.
   */
  restore(name: string, backup: Uint8Array, epoch: number): void {
    for (const member of this.list) {
      member.powerOff()
      member.wipe()
    }
    const member = this.member(name)
    this.#record = this.#mint([name])
    this.#joins(member)
    restoreTo(member, member.founding as BootstrapCluster, backup, { epoch, floor: this.#floor() }, (state) => {
      this.checks.restored(state, { index: state.index, term: 1 })
      member.start()
    })
  }

  /** Founds the service again, on emptied disks: it has the same names and the same epoch, and knows nothing. */
  foundAgain(): void {
    for (const member of this.list) {
      member.powerOff()
      member.wipe()
    }
    this.#record = this.#mint([...this.members.keys()])
    this.checks.restored(this.#foundingState(), { index: 0, term: 0 })
    for (const member of this.list) {
      this.#joins(member)
      member.start()
    }
  }

  /** What all founders agree on: ids that no other service has, and where tokens start. */
  #mint(names: readonly string[]): Required<Omit<BootstrapCluster, 'node'>> {
    const random = this.#random()
    const id = mintCluster(random)
    const founders = foundersOf(
      names,
      names.map(() => mintNode(random)),
    )
    return { id, founders, floor: this.#floor(), level: LEVEL_MAX }
  }

  #random() {
    const draws = this.world.stream('cluster', this.#options.identity ?? 'identity')
    return { bytes: (length: number) => draws.bytes(length), below: (limit: number) => draws.below(limit) }
  }

  #floor(): Serial {
    const { clockFloors } = { ...LAB_SETTINGS, ...this.#options.settings }
    return clockFloors ? (floorAt(worldWallMs(this.world.nowUs)) as Serial) : (0 as Serial)
  }

  #foundingState(): LockState {
    const { epoch, limits } = { limits: undefined, ...this.#options, epoch: this.epoch }
    const { floor, level } = this.#record
    return LockState.create({ epoch, level, floor: floor as Serial, ...(limits ? { limits } : {}) })
  }

  #joins(member: SimulatedMember): void {
    const founder = this.#record.founders.find((one) => one.name === member.name)
    if (founder) member.founding = { ...this.#record, node: founder.node }
  }

  #newcomer(name: string): MembershipChange & { kind: 'add' } {
    const member = this.member(name)
    const node = mintNode(this.#random())
    member.founding = { ...this.#record, node }
    return { kind: 'add', member: { name, node, peer: name, url: member.url } }
  }

  #make(name: string): SimulatedMember {
    const { world } = this
    const options = this.#options
    const machine = world.machine(name, options.machines?.(name) ?? {})
    const member = new SimulatedMember({
      name,
      machine,
      settings: { ...LAB_SETTINGS, ...options.settings },
      epoch: this.epoch,
      ...(options.limits ? { limits: options.limits } : {}),
      network: (process, one) =>
        peerNetwork(
          process,
          one,
          (from) => this.members.get(from)?.founding?.node,
          (message) => this.checks.promises.says(message),
        ),
      urls: () => this.urls,
      spokeBroken: (one) =>
        this.checks.violations.report('I11', `${one.name} spoke to a member after its disk had failed`),
      refused: (one, error) => {
        if (one.disk.altered) return
        this.checks.violations.report(
          'I10',
          `${one.name} refuses a disk on which nothing has changed: ${error.message}`,
        )
      },
      opened: (one, replica, hub) => this.#opened(one, replica, hub),
    })
    member.lines = options.log
    this.#joins(member)
    member.disk.watched = options.watchFolders === true
    this.members.set(name, member)
    return member
  }

  #opened(member: SimulatedMember, replica: Replica, hub: StreamHub<LockState>): () => void {
    const process = member.process as Process
    const off = this.checks.attach(member.name, replica)
    member.hasApplied(inspect(replica).applied.index)
    replica.onApplied(({ index }) => member.hasApplied(index))
    const observe = (): StreamObserver => {
      const leases = new LeaseObserver(this.checks.sessions, () => this.world.nowUs / 1000)
      return {
        received: (messages) => leases.received(messages),
        sent: (messages) => {
          if (member.effect(process, 'answer')) leases.sent(messages)
        },
      }
    }
    serveStreams(process, hub, observe, () => this.access.peer())
    return off
  }
}

function termOf({ replica }: SimulatedMember): number {
  return replica ? inspect(replica).raft.term : 0
}
