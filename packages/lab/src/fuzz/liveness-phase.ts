import type { Hold } from '@leasehold/client'
import { fence as casFence } from '@leasehold/fence/cas'
import type { LockHistory } from '../checkers/lock-history.js'
import { SimulatedClient } from '../cluster/simulated-client.js'
import type { Cluster } from '../cluster/cluster.js'
import type { ModelName } from '../history/models/index.js'
import type { World } from '../world/world.js'
import type { FaultInjector } from './fault-injector.js'
import { codeOf } from './outcomes.js'
import type { Shared } from './shared.js'
import { DELAY_MAX_MS, numberOf, PERMITS } from './workload.js'

const US_PER_MS = 1000
/** Within so many election timeouts after healing a new acquire succeeds. */
const ELECTIONS_MAX = 20
/** A member looks for room on its full disk this often, and a client waits so long for a member that does not answer. */
const ROOM_MS = 1000
const ATTEMPT_MS = 2000
const RETRY_US = 200_000
/** What a member may lack at the end, and how long it may take until then. */
const LAG_MAX = 20
const CATCH_UP_MS = 2000
const SLOW_WRITE_MS = 4000
/** An ended session's locks are free this much later than promised at the latest: commits and ticks. */
const SLACK_MS = 3000

interface LivenessPhaseOptions {
  readonly world: World
  readonly cluster: Cluster
  readonly clients: ReadonlyMap<string, SimulatedClient>
  readonly shared: Shared
  readonly injector: FaultInjector
  readonly broken: () => boolean
}

/**
 * The last part of a run. No new faults: a majority of members is healthy and connected, the others stay away until the end.
 * Within a bound there must be a leader that serves, no orphaned hold may be left, and what was acknowledged must be there.
 */
export class LivenessPhase {
  /** Histories without a verdict. */
  undecided = 0

  readonly #options: LivenessPhaseOptions

  constructor(options: LivenessPhaseOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    const { world, cluster, clients, shared, injector, broken } = this.#options
    const { violations } = cluster.checks
    const { plan } = shared
    const draw = world.stream('ending', 'core')
    shared.stopped = true
    // Some weak members stay cut off until the end.
    const away = plan.weak.filter(() => draw.chance(400_000))
    injector.heal(away)
    for (const client of clients.values()) if (draw.chance(300_000)) client.machine.powerOff()
    const fresh = this.#newClient('fresh')
    await this.#acquires(fresh, away.length)
    if (broken()) return
    await this.#noOrphans(fresh)
    if (broken()) return
    await this.#counters(fresh)
    await world.run(world.nowUs + CATCH_UP_MS * US_PER_MS, broken)
    // A write that a slow disk had begun before it was repaired takes its time.
    if (this.#behind().length > 0) await world.run(world.nowUs + SLOW_WRITE_MS * US_PER_MS, broken)
    this.#caughtUp()
    cluster.checks.watches.finish()
    if (!violations.any) this.#judge(shared.history)
  }

  #newClient(name: string): SimulatedClient {
    const { world, cluster } = this.#options
    const machine = world.machine(name)
    const options = { name, machine, urls: cluster.urls, beliefs: cluster.checks.beliefs }
    return new SimulatedClient({ ...options, locks: { ttl: 10_000, connectTimeout: '30s' } })
  }

  /** Runs `work` in a client's process, until it is done or `boundMs` have passed. */
  async #within(client: SimulatedClient, boundMs: number, work: () => Promise<void>): Promise<string | undefined> {
    const { world, broken } = this.#options
    let end: { readonly problem: string | undefined } | undefined
    const run = async (): Promise<void> => {
      try {
        await work()
        end = { problem: undefined }
      } catch (error) {
        end = { problem: `${codeOf(error)}: ${(error as Error).message}` }
      }
    }
    client.process.soon(() => void run())
    await world.run(world.nowUs + Math.ceil(boundMs * US_PER_MS), () => end !== undefined || broken())
    return end ? end.problem : `not within ${boundMs} ms`
  }

  async #acquires(fresh: SimulatedClient, away: number): Promise<void> {
    const { cluster, shared } = this.#options
    const { plan } = shared
    const boundMs = ELECTIONS_MAX * plan.electionTicks * plan.tickMs + ROOM_MS + away * ATTEMPT_MS
    const problem = await this.#within(fresh, boundMs, async () => {
      for (let hold: Hold | undefined; hold === undefined; ) {
        try {
          hold = await fresh.locks.acquire('fresh', { wait: boundMs })
          await hold.release()
        } catch (error) {
          // A disk that was full takes a moment to notice that it has room again.
          if (codeOf(error) !== 'storage') throw error
          await fresh.process.sleep(RETRY_US)
        }
      }
    })
    if (problem !== undefined)
      cluster.checks.violations.report('I12', `a new acquire after healing: ${problem}\n${this.#standing()}`)
  }

  /** Every lock of the workload can be had, once the sessions of the dead have ended. */
  async #noOrphans(fresh: SimulatedClient): Promise<void> {
    const { cluster, shared, world } = this.#options
    const { plan } = shared
    const boundMs = 1.05 * Math.max(plan.ttlMs, 10_000) + DELAY_MAX_MS + SLACK_MS + 5000
    const names = Array.from({ length: plan.locks }, (_, n) => [
      `unit${n}`,
      `reg${n}`,
      `rw${n}`,
      `several${n}`,
      `handed${n}`,
      `kept${n}`,
    ]).flat()
    const before = world.nowUs
    const problem = await this.#within(fresh, boundMs * 1.1, async () => {
      for (const name of names) {
        const hold = await fresh.locks.acquire(name, { wait: boundMs })
        await hold.release()
      }
    })
    if (problem === undefined) return
    const held = [...cluster.checks.log.state.machine.holds.values()].map(
      (hold) => `${hold.held[0]?.name} by ${hold.client}`,
    )
    const spentMs = (world.nowUs - before) / US_PER_MS
    cluster.checks.violations.report(
      'I7',
      `${spentMs} ms after healing: ${problem}; held: ${held.join(', ')}\n${this.#standing()}`,
    )
  }

  /** Checks the counters: they contain every acknowledged unit, and nothing that was not sent. */
  async #counters(fresh: SimulatedClient): Promise<void> {
    const { shared, cluster } = this.#options
    const { violations } = cluster.checks
    const guard = casFence(shared.store.connect(fresh.process))
    const problem = await this.#within(fresh, 20_000, async () => {
      for (const [name, { acknowledged, unknown }] of shared.units) {
        const key = name.replace(/^register /, '')
        const value =
          name === key ? numberOf(await guard.latest(key)) : Number((await fresh.locks.register(key).get())?.value ?? 0)
        if (value >= acknowledged && value <= acknowledged + unknown) continue
        violations.report(
          'I3',
          `${name} is ${value} after ${acknowledged} acknowledged units and ${unknown} of unknown outcome`,
        )
      }
    })
    if (problem !== undefined) violations.report('I12', `reading the counters: ${problem}`)
  }

  /** Members that run and are connected have the same as the leader. */
  #caughtUp(): void {
    const { violations } = this.#options.cluster.checks
    if (!this.#options.cluster.leader) return violations.report('I12', `no leader at the end\n${this.#standing()}`)
    for (const name of this.#behind()) {
      violations.report('I12', `${name} has not caught up at the end\n${this.#standing()}`)
    }
  }

  #behind(): string[] {
    const { cluster, world } = this.#options
    const { leader } = cluster
    if (!leader) return []
    const connected = cluster.list.filter((member) => {
      const isMember = leader.replica?.members.some((one) => one.name === member.name)
      return member.running && isMember && !world.network.link(leader.name, member.name).isCut
    })
    return connected.filter((member) => leader.applied - member.applied > LAG_MAX).map((member) => member.name)
  }

  #judge(history: LockHistory): void {
    const { violations } = this.#options.cluster.checks
    const kinds: [ModelName, RegExp, number?][] = [
      ['fenced-mutex', /^(unit|reg)/],
      ['rw', /^rw/],
      ['permits', /^permit/, PERMITS],
      ['register', /^cas/],
    ]
    for (const [model, keys, permits] of kinds) {
      const result = history.judge(model, (key) => keys.test(key), permits)
      if (result?.verdict === 'not-linearizable') violations.report('I6', `${model}: ${result.explanation?.text}`)
      this.undecided += result?.undecided.length ?? 0
    }
  }

  #standing(): string {
    const { cluster, world } = this.#options
    const lines = cluster.list.map((member) => {
      const status = member.replica?.status
      const why = member.refused?.message ?? member.failure ?? ''
      const state = status
        ? `${status.role} term ${status.term} applied ${status.appliedIndex} leader ${status.leader}`
        : 'down'
      return `  ${member.name}: ${state} ${why}${member.process?.paused ? ' paused' : ''}`
    })
    const members = cluster.leader?.replica?.members.map((one) => `${one.name} ${one.role} ${one.match}`)
    return `${lines.join('\n')}\n  at ${world.nowUs / US_PER_MS} ms, members: ${members?.join(', ')}`
  }
}
