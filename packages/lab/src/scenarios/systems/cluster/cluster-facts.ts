import type { Event } from '@leasehold/core'
import type { Canonical } from '../../../checkers/committed-log.js'
import type { Cluster } from '../../../cluster/index.js'
import type { World } from '../../../world/index.js'

interface Granted {
  readonly client: string
  readonly atUs: number
  readonly token: number
}

/** What members log when they find the leader's clock too fast. */
const CLOCK_ALARM = 'the clock of the leader runs faster'

/** What a cluster has to tell at the end: from its log, not from what anybody believes. */
export class ClusterFacts {
  readonly #grants = new Map<string, Granted[]>()
  readonly #freed = new Map<string, { readonly reason: string; readonly atUs: number }[]>()
  readonly #sessionClients = new Map<number, string>()
  readonly #sessionEnds = new Map<string, { readonly reason: string; readonly atUs: number }[]>()
  readonly #events: Record<string, number> = {
    held: 0,
    freed: 0,
    queued: 0,
    unqueued: 0,
    sessionOpened: 0,
    sessionEnded: 0,
  }
  readonly #commands: Record<string, number> = {}
  #pushes = 0
  #clockAlarms = 0
  #terms = new Set<number>()
  readonly #holdClients = new Map<number, string>()

  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  entry({ applied, entry, term }: Canonical): void {
    this.#terms.add(term)
    this.#pushes += applied.pushes.length
    for (const { kind } of entry.commands) this.#commands[kind] = (this.#commands[kind] ?? 0) + 1
    for (const event of applied.events) this.#event(event)
  }

  #event(event: Event): void {
    const atUs = this.#world.nowUs
    this.#events[event.kind] = (this.#events[event.kind] ?? 0) + 1
    if (event.kind === 'sessionOpened') this.#sessionClients.set(event.session, event.client)
    if (event.kind === 'sessionEnded') {
      listOf(this.#sessionEnds, this.#sessionClients.get(event.session) ?? '').push({ reason: event.reason, atUs })
    }
    if (event.kind === 'held') {
      this.#holdClients.set(event.grant.hold, event.client)
      for (const { name, token } of event.grant.locks)
        listOf(this.#grants, name).push({ client: event.client, atUs, token })
    }
    if (event.kind === 'freed') {
      listOf(this.#freed, this.#holdClients.get(event.hold) ?? '').push({ reason: event.reason, atUs })
    }
  }

  /** A member has logged this. */
  line(text: string): void {
    if (text.includes(CLOCK_ALARM)) this.#clockAlarms++
  }

  /** Times are seconds of the scenario. */
  of(cluster: Cluster, startUs: number): Record<string, unknown> {
    const at = (us: number): number => Math.round((us - startUs) / 1000) / 1000
    const { state } = cluster.checks.log
    const { machine } = state
    const holders = [...machine.locks.values()].flatMap((lock) => {
      const held = [...cluster.checks.grants.holdersOf(lock.name).keys()]
      return held.length > 0 ? [[lock.name, held.map((hold) => this.#holdClients.get(hold) ?? '')] as const] : []
    })
    const running = cluster.list.filter((member) => member.running)
    const leader = cluster.leader
    return {
      order: recordOf(this.#grants, (list) => list.map(({ client }) => client)),
      grantedAt: recordOf(this.#grants, (list) => list.map(({ atUs }) => at(atUs))),
      tokens: recordOf(this.#grants, (list) => list.map(({ token }) => token)),
      generations: recordOf(this.#grants, (list) => new Set(list.map(({ token }) => token)).size),
      ended: recordOf(this.#sessionEnds, (list) => list.map(({ reason, atUs }) => ({ reason, at: at(atUs) }))),
      freed: recordOf(this.#freed, (list) => list.map(({ reason, atUs }) => ({ reason, at: at(atUs) }))),
      holders: Object.fromEntries(holders),
      waiting: machine.waiters.size,
      sessions: machine.sessions.size,
      terms: this.#terms.size,
      events: this.#events,
      commands: this.#commands,
      pushes: this.#pushes,
      leader: leader?.name ?? '',
      members: Object.fromEntries(cluster.list.map((member) => [member.name, standing(member)])),
      refusals: Object.fromEntries(cluster.list.map((member) => [member.name, member.refused?.message ?? ''])),
      failed: cluster.list.reduce((sum, member) => sum + member.failures, 0),
      refused: cluster.list.filter((member) => member.refused).length,
      everRefused: Object.fromEntries(cluster.list.map((member) => [member.name, member.refusals])),
      running: running.length,
      failures: Object.fromEntries(cluster.list.map((member) => [member.name, member.failures])),
      voters:
        leader?.replica?.members
          .filter((one) => one.role === 'voter')
          .map((one) => one.name)
          .sort(byText) ?? [],
      lag: Math.max(0, ...running.map((member) => (leader?.applied ?? 0) - member.applied)),
      entries: cluster.checks.entries,
      epoch: state.epoch,
      clockAlarms: this.#clockAlarms,
      accessRefused: Object.fromEntries([...cluster.access.refusals].sort(([a], [b]) => byText(a, b))),
      disks: Object.fromEntries(cluster.list.map(({ name, disk }) => [name, { ...disk.counts }])),
    }
  }
}

function standing(member: Cluster['list'][number]): string {
  if (member.running) return member.replica?.status.role ?? ''
  return member.refused ? 'refused' : 'down'
}

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}

function listOf<T>(map: Map<string, T[]>, key: string): T[] {
  let list = map.get(key)
  if (!list) {
    list = []
    map.set(key, list)
  }
  return list
}

function recordOf<T, U>(map: ReadonlyMap<string, T>, of: (value: T) => U): Record<string, U> {
  return Object.fromEntries([...map].map(([key, value]) => [key, of(value)]))
}
