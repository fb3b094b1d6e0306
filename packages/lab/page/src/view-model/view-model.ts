import { queryState, type QueryResult } from '@leasehold/core'
import type { Finding, Play, Step } from '@leasehold/lab/scenarios/index'
import { inspect } from '@leasehold/replica'
import type { FaultInjector } from './fault-injector.js'
import { tokenText } from './token-text.js'

/** How things stand, for a picture. Looking changes nothing. */
export interface ViewModel {
  readonly at: number
  readonly members: readonly MemberView[]
  readonly clients: readonly ClientView[]
  readonly resources: readonly ResourceView[]
  readonly findings: readonly Finding[]
}

export interface MachineView {
  readonly name: string
  readonly state: 'up' | 'paused' | 'down'
  /** Seconds by which its wall clock is off, and how fast its clocks run, in percent. */
  readonly clockOff: number
  readonly drift: number
  readonly isolated: boolean
}

export interface MemberView extends MachineView {
  readonly kind: 'raft' | 'node'
  readonly role: string
  readonly term: number
  readonly commit: number
  readonly last: number
  readonly diskBytes: number
  /** Why it does not run. */
  readonly trouble: string | undefined
  /** Of a node of Redlock: whose key it has. */
  readonly key: { readonly owner: string; readonly remainingMs: number } | undefined
}

export interface ClientView extends MachineView {
  readonly doing: string
  readonly busy: boolean
  /** What the client itself believes. */
  readonly hold: { readonly token: string | undefined; readonly remainingMs: number } | undefined
  /** What the service knows. */
  readonly lease: { readonly token: string | undefined; readonly remainingMs: number } | undefined
  /** Place in the queue, from 1. */
  readonly queued: number | undefined
  readonly outcome: string
  readonly armed: boolean
  readonly losesRenewals: boolean
  /** There is a service that knows of leases. */
  readonly served: boolean
  readonly auto: boolean
}

export interface ResourceView extends MachineView {
  readonly kind: string
  readonly value: number
  readonly mark: string | undefined
  /** The last write that came. */
  readonly last:
    | {
        readonly by: string
        readonly token: string | undefined
        readonly accepted: boolean
        readonly atUs: number
        /** It was taken though the lock had passed on: the later token that was granted by then. */
        readonly after: string | undefined
      }
    | undefined
  readonly violations: number
}

/** What a member knows of holds and waiters, and how long ago in milliseconds its state had this time. */
interface ServiceState {
  readonly result: QueryResult
  readonly passedMs: number
}

export const TTL_MS = 10_000

/** Cluster time moves with entries; between two of them a picture moves by itself. */
export class ViewModelBuilder {
  #clusterNow = -1
  #clusterAtUs = 0
  #found: readonly Finding[] = []
  #foundAt = -1
  /** What their wall clocks showed at the world's beginning. */
  readonly #wallStartUs: ReadonlyMap<string, number>

  readonly #play: Play
  readonly #injector: FaultInjector

  constructor(play: Play, injector: FaultInjector) {
    this.#play = play
    this.#injector = injector
    const { nowUs, machines } = play.world
    this.#wallStartUs = new Map(machines.map((machine) => [machine.name, machine.clockUs('wall') - nowUs]))
  }

  viewModel(): ViewModel {
    const play = this.#play
    const findings = this.#findings()
    const state = this.#service()
    return {
      at: play.at(play.world.nowUs),
      members: play.system.members.map((name) => this.#member(name)),
      clients: [...play.clients.keys()].map((name) => this.#client(name, state)),
      resources: [...play.resources.keys()].map((name) => this.#resource(name, findings)),
      findings,
    }
  }

  /** Judged again only when something has come to pass. */
  #findings(): readonly Finding[] {
    const play = this.#play
    let count = play.book.records.length + play.book.overlaps.length + play.world.uncaughtErrors.length
    count += play.system.violations?.().length ?? 0
    for (const resource of play.resources.values()) count += resource.records.length
    if (count !== this.#foundAt) this.#found = play.findings()
    this.#foundAt = count
    return this.#found
  }

  #machine(name: string): MachineView {
    const injector = this.#injector
    const play = this.#play
    const machine = play.world.machineOf(name)
    const [process] = machine.processes
    const off = (machine.clockUs('wall') - (this.#wallStartUs.get(name) ?? 0) - play.world.nowUs) / 1_000_000
    return {
      name,
      state: process === undefined ? 'down' : process.paused ? 'paused' : 'up',
      clockOff: Math.abs(off) < 0.05 ? 0 : off,
      drift: (injector.drift.get(name) ?? 0) / 10_000,
      isolated: injector.isIsolated(name),
    }
  }

  #member(name: string): MemberView {
    const { system } = this.#play
    const machine = this.#machine(name)
    const none = { role: '', term: 0, commit: 0, last: 0, diskBytes: 0, trouble: undefined, key: undefined }
    const member = system.cluster?.member(name)
    if (member === undefined) {
      const key = system.look?.(name, 'L')
      const shown = key === undefined ? undefined : { owner: key.owner, remainingMs: key.remainingMs ?? TTL_MS }
      return { ...machine, ...none, kind: 'node', key: shown }
    }
    const diskBytes = member.disk.used
    const trouble = member.refused?.message ?? member.failure
    if (!member.running || member.replica === undefined)
      return { ...machine, ...none, kind: 'raft', diskBytes, trouble }
    const { role } = member.replica.status
    const { term, commit, last } = inspect(member.replica).raft
    return { ...machine, kind: 'raft', role, term, commit, last, diskBytes, trouble, key: undefined }
  }

  /** What the leader (else: the member that has applied most) knows of sessions. */
  #service(): ServiceState | undefined {
    const { cluster } = this.#play.system
    if (cluster === undefined) return undefined
    const [furthest] = cluster.list.filter(({ running }) => running).sort((a, b) => b.applied - a.applied)
    const member = cluster.leader ?? furthest
    if (member?.replica === undefined) return undefined
    const { state, applied } = inspect(member.replica)
    const { nowUs } = this.#play.world
    if (state.now !== this.#clusterNow) {
      this.#clusterNow = state.now
      this.#clusterAtUs = nowUs
    }
    return { result: queryState(state, {}, applied.index as never), passedMs: (nowUs - this.#clusterAtUs) / 1000 }
  }

  #client(name: string, service: ServiceState | undefined): ClientView {
    const injector = this.#injector
    const play = this.#play
    const program = play.programs.get(name)
    const process = play.clients.get(name)
    const held = process?.alive === true ? program?.held : undefined
    const remainingMs = held?.by.remainingMs?.() ?? 0
    const outcome = program?.outcome ?? 'unfinished'
    return {
      ...this.#machine(name),
      doing: program?.doing === undefined ? '' : doingText(program.doing),
      busy: program?.doing !== undefined,
      hold: held === undefined ? undefined : { token: text(held.by.token), remainingMs: Math.max(0, remainingMs) },
      lease: leaseOf(name, service),
      queued: queuedOf(name, service),
      outcome,
      armed: injector.isArmed(name),
      served: play.system.cluster !== undefined,
      losesRenewals: injector.loseRenewals.has(name),
      auto: injector.auto.has(name),
    }
  }

  #laterGrant(token: bigint | undefined, atUs: number): bigint | undefined {
    if (token === undefined) return undefined
    return this.#play.book.records.findLast(
      (one) => one.grantedUs < atUs && one.token !== undefined && one.token > token,
    )?.token
  }

  #resource(name: string, findings: readonly Finding[]): ResourceView {
    const resource = this.#play.resources.get(name)
    if (resource === undefined) throw new Error(`no resource ${name}`)
    const last = resource.records.filter(({ action }) => action === 'write').at(-1)
    return {
      ...this.#machine(name),
      kind: resource.kind,
      value: resource.value,
      mark: text(resource.mark),
      last:
        last === undefined
          ? undefined
          : {
              by: last.unit.client,
              token: text(last.token),
              accepted: last.accepted,
              atUs: last.atUs,
              after: last.accepted ? text(this.#laterGrant(last.token, last.atUs)) : undefined,
            },
      violations: findings.filter(({ who }) => who.includes(name)).length,
    }
  }
}

function text(token: bigint | undefined): string | undefined {
  return token === undefined ? undefined : tokenText(token)
}

function leaseOf(client: string, service: ServiceState | undefined): ClientView['lease'] {
  if (service === undefined) return undefined
  const { result, passedMs } = service
  const hold = result.held.find((one) => one.client === client)
  if (hold?.remainingMs === undefined) return undefined
  // The state has tokens without their epoch.
  const serial = hold.locks[0]?.token
  return {
    token: serial === undefined ? undefined : String(serial),
    remainingMs: Math.max(0, hold.remainingMs - passedMs),
  }
}

function queuedOf(client: string, service: ServiceState | undefined): number | undefined {
  const place = service?.result.pending.findIndex((one) => one.client === client) ?? -1
  return place < 0 ? undefined : place + 1
}

function doingText(step: Step): string {
  switch (step.do) {
    case 'acquire':
      return 'asks for the lock'
    case 'read':
      return 'reads'
    case 'work':
      return 'computes'
    case 'write':
      return 'writes'
    case 'release':
      return 'releases'
    case 'wait':
      return `waits until second ${step.until}`
    default:
      return step.do
  }
}
