import type { Violation } from '../checkers/violation.js'
import { SimulatedClient } from '../cluster/simulated-client.js'
import { Cluster } from '../cluster/cluster.js'
import { QUIET_DISK } from '../cluster/disk/disk-faults.js'
import { SimulatedStore } from '../cluster/simulated-store.js'
import { LockHistory } from '../checkers/lock-history.js'
import type { TimelineEvent } from '../world/timeline.js'
import { World } from '../world/world.js'
import { FaultInjector } from './fault-injector.js'
import { LivenessPhase } from './liveness-phase.js'
import { Observer } from './observer.js'
import type { Plan } from './plan.js'
import type { Shared } from './shared.js'
import { Worker } from './workload.js'

const US_PER_MS = 1000

export interface Outcome {
  readonly violations: readonly Violation[]
  /** Simulated time, in milliseconds. */
  readonly simulatedMs: number
  readonly traceHash: string
  readonly events: number
  readonly entries: number
  readonly grants: number
  readonly done: Readonly<Record<string, number>>
  readonly errors: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<string, number>>
  /** Locks and registers whose history could not be judged within its bound. */
  readonly undecided: number
}

export interface RunOptions {
  /** Hears of what happens, line by line. */
  readonly log?: (line: string) => void
  /** Hears of what happens, as data for pictures. */
  readonly happened?: (event: TimelineEvent) => void
}

/** Runs a plan: the safety phase with its faults, then the end, in which everything must come right again. */
export async function runPlan(plan: Plan, options: RunOptions = {}): Promise<Outcome> {
  return await new Run(plan, options).run()
}

class Run {
  readonly #world: World
  readonly #cluster: Cluster
  readonly #clients = new Map<string, SimulatedClient>()
  readonly #shared: Shared
  readonly #injector: FaultInjector

  readonly #plan: Plan

  constructor(plan: Plan, options: RunOptions) {
    this.#plan = plan
    const { log, happened } = options
    this.#world = new World({ seed: plan.seed })
    const world = this.#world
    world.timeline.enabled = log !== undefined || happened !== undefined
    if (happened) world.timeline.onEvent(happened)
    if (log) world.timeline.onEvent((event) => log(`${stamp(event.atUs)} ${textOf(event)}`))
    this.#cluster = clusterOf(plan, world, log)
    const { checks } = this.#cluster
    const store = new SimulatedStore(world.machine('store'))
    store.onWrite = (key, bytes) => checks.marks.stored(key, bytes)
    this.#shared = {
      plan,
      checks,
      history: new LockHistory(),
      store,
      units: new Map(),
      done: new Map(),
      errors: new Map(),
      handed: [],
      stopped: false,
    }
    for (let i = 1; i <= plan.clients; i++) this.#addClient(`C${i}`)
    for (let i = 1; i <= (plan.observers ?? 0); i++) this.#addClient(`O${i}`)
    this.#injector = new FaultInjector({
      world,
      cluster: this.#cluster,
      clients: this.#clients,
      restarted: (client) => this.#begin(client),
      weak: plan.weak,
    })
  }

  async run(): Promise<Outcome> {
    const world = this.#world
    const cluster = this.#cluster
    const plan = this.#plan
    const shared = this.#shared
    const { violations } = cluster.checks
    cluster.start()
    for (const client of this.#clients.values()) this.#begin(client)
    this.#injector.schedule(plan.faults)
    const broken = (): boolean => violations.any || world.uncaughtErrors.length > 0
    await world.run(plan.safetyMs * US_PER_MS, broken)
    const ending = new LivenessPhase({
      world,
      cluster,
      clients: this.#clients,
      shared,
      injector: this.#injector,
      broken,
    })
    if (!broken()) await ending.run()
    for (const { process, error } of world.uncaughtErrors.slice(0, 1)) {
      violations.report('L4', `${process}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
    return this.#outcome(ending.undecided)
  }

  #begin(client: SimulatedClient): void {
    const observes = client.name.startsWith('O')
    if (observes) new Observer(client, this.#shared).start()
    else new Worker(client, this.#shared).start()
  }

  #addClient(name: string): void {
    const plan = this.#plan
    const world = this.#world
    const cluster = this.#cluster
    const machine = world.machine(name, { driftPpm: plan.drift[name] ?? 0 })
    const options = { name, machine, urls: cluster.urls, beliefs: cluster.checks.beliefs }
    this.#clients.set(name, new SimulatedClient({ ...options, locks: { ttl: plan.ttlMs } }))
  }

  #outcome(undecided: number): Outcome {
    const world = this.#world
    const cluster = this.#cluster
    const shared = this.#shared
    const injector = this.#injector
    const { checks } = cluster
    return {
      violations: checks.violations.found,
      simulatedMs: world.nowUs / US_PER_MS,
      traceHash: world.trace.digest,
      events: world.trace.count,
      entries: checks.entries,
      grants: checks.grants.grants,
      done: sorted(shared.done),
      errors: sorted(shared.errors),
      faults: sorted(injector.counts),
      undecided,
    }
  }
}

/** In the order of the keys, so that equal runs look equal. */
function sorted(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function clusterOf(plan: Plan, world: World, log: ((line: string) => void) | undefined): Cluster {
  const cluster = new Cluster(world, {
    names: Array.from({ length: plan.members }, (_, i) => `N${i + 1}`),
    ...(plan.epoch === undefined ? {} : { epoch: plan.epoch }),
    settings: {
      tickMs: plan.tickMs,
      electionTicks: plan.electionTicks,
      snapshotBytes: plan.snapshotBytes,
      blockingWrites: plan.blockingWrites,
      clockFloors: plan.clockFloors === true,
    },
    watchFolders: plan.faults.some(({ kind }) => kind === 'removeFolder'),
    machines: (name) => ({ driftPpm: plan.drift[name] ?? 0 }),
    ...(log ? { log: (line: string) => log(`${stamp(world.nowUs)} ${line}`) } : {}),
  })
  for (const { disk } of cluster.list) {
    disk.faults = {
      ...QUIET_DISK,
      loss: plan.diskLoss,
      kept: plan.folderKept,
      journal: plan.folderJournal,
      syncMs: plan.syncMs,
      syncSpreadMs: plan.syncMs,
    }
  }
  return cluster
}

function stamp(us: number): string {
  return `${(us / 1_000_000).toFixed(3).padStart(8)}`
}

function textOf(event: object): string {
  const { kind, atUs: _at, ...rest } = event as { kind: string; atUs: number }
  const words = Object.entries(rest).map(([name, value]) =>
    name === 'text' ? String(value) : `${name}=${String(value)}`,
  )
  return `${kind} ${words.join(' ')}`
}
