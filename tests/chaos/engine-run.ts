import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, type Locks } from 'leasehold'
import { judgeHistories, judgeTokens } from './checks/history.js'
import { judgeKept, judgeLong } from './checks/kept.js'
import { judgeResource } from './checks/resource.js'
import { WatchJudge } from './checks/watching.js'
import { ClientProcesses, PATIENCE_MS } from './clients.js'
import { SeededRandom } from './random.js'
import { readJournals } from './work/journal.js'

/** An engine that is not ours, and what can be done to it. */
export interface EngineWorld {
  readonly url: string
  /** Each makes a fault and takes it back before it resolves. */
  readonly faults: Readonly<Record<string, (random: SeededRandom) => Promise<void>>>
  stop(): Promise<void>
}

export interface EngineChaosOptions {
  readonly seed: number
  readonly durationMs: number
  readonly clients: number
  /** On a busy machine the run continues until so much has happened, for {@link PATIENCE_MS} at most. */
  readonly atLeast?: { readonly operations: number; readonly faults: number }
  readonly start: () => Promise<EngineWorld>
  say(line: string): void
}

export interface EngineChaosResult {
  readonly problems: readonly string[]
  readonly operations: number
  readonly faults: number
  readonly summary: readonly string[]
  /** Kept when there are problems. */
  readonly folder: string | undefined
}

/** After each fault a client that knows nothing must get a lock within this. */
const RECOVERY_LIMIT_MS = 15_000
const CALM_MS_MIN = 500
const CALM_MS_MAX = 2_500
const PROBLEMS_SHOWN_MAX = 20

/** Client processes with guarded writes on an engine under faults, one after the other; then the verdicts. */
export async function runEngineChaos(options: EngineChaosOptions): Promise<EngineChaosResult> {
  const folder = mkdtempSync(join(tmpdir(), `leasehold-chaos-${options.seed}-`))
  const run = new EngineRun(options, folder)
  try {
    await run.run()
  } catch (error) {
    run.problem(`the run broke off: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  } finally {
    await run.close()
  }
  if (run.problems.length === 0) rmSync(folder, { recursive: true, force: true })
  return run.result()
}

class EngineRun {
  readonly problems: string[] = []
  readonly #counts = new Map<string, number>()
  readonly #recoveriesMs: number[] = []
  readonly #summary: string[] = []
  #operations = 0
  #world: EngineWorld | undefined
  #clients: ClientProcesses | undefined
  #watch: WatchJudge | undefined
  #locks: Locks | undefined

  readonly #options: EngineChaosOptions
  readonly #folder: string

  constructor(options: EngineChaosOptions, folder: string) {
    this.#options = options
    this.#folder = folder
  }

  problem(text: string): void {
    this.problems.push(text)
    this.#options.say(`PROBLEM ${text}`)
  }

  async run(): Promise<void> {
    const { start, seed, durationMs, clients: count, say } = this.#options
    const world = await start()
    this.#world = world
    const clients = new ClientProcesses(this.#folder, world.url, seed, (name, code, signal) => {
      this.problem(`client ${name} ended by itself (${signal ?? `code ${code}`}), see ${name}.log`)
    })
    this.#clients = clients
    this.#watch = new WatchJudge(world.url)
    this.#locks = createLocks(world.url, { clientName: 'harness' })
    for (let i = 0; i < count; i++) clients.start()
    say(`${world.url}, ${count} client processes, folder ${this.#folder}`)
    const random = new SeededRandom(seed)
    const faults = { ...world.faults, ...clientFaults(clients) }
    const end = performance.now() + durationMs
    while (performance.now() < end || (performance.now() < end + PATIENCE_MS && !this.#isEnough(clients))) {
      await sleep(random.between(CALM_MS_MIN, CALM_MS_MAX))
      const kind = random.pick(Object.keys(faults))
      say(kind)
      this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
      await faults[kind]?.(random)
      await this.#recover(world.url)
    }
    await this.#judge(clients)
  }

  #isEnough(clients: ClientProcesses): boolean {
    const { operations = 0, faults = 0 } = this.#options.atLeast ?? {}
    const made = [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
    return made >= faults && clients.operations >= operations
  }

  async #recover(url: string): Promise<void> {
    const begun = performance.now()
    const locks = createLocks(url, { clientName: 'probe', connectTimeout: RECOVERY_LIMIT_MS })
    try {
      await locks.request(`probe/${this.#recoveriesMs.length}`, { wait: RECOVERY_LIMIT_MS }, () => {})
    } catch (error) {
      this.problem(`${RECOVERY_LIMIT_MS} ms after a fault no acquire had succeeded: ${String(error)}`)
    } finally {
      await locks.close()
    }
    this.#recoveriesMs.push(Math.round(performance.now() - begun))
  }

  async #judge(clients: ClientProcesses): Promise<void> {
    const locks = this.#locks as Locks
    const long = await judgeLong(locks, readJournals(clients.journals), clients.alive)
    for (const name of await clients.end()) this.problem(`client ${name} did not come to its end by itself`)
    await this.#watch?.close()
    const recorded = readJournals(clients.journals)
    const kept = await judgeKept(locks, recorded)
    const histories = judgeHistories(recorded)
    const resource = judgeResource(clients.resourceFile, recorded)
    const seen = this.#watch?.judge
    const problems = [long, kept, resource, { problems: judgeTokens(recorded) }, { problems: seen?.problems ?? [] }]
    for (const problem of problems.flatMap((one) => one.problems).slice(0, PROBLEMS_SHOWN_MAX)) this.problem(problem)
    for (const { problem } of histories) if (problem !== undefined) this.problem(problem)
    this.#operations = histories.reduce((sum, { operations }) => sum + operations, 0)
    const slowest = Math.max(...this.#recoveriesMs)
    this.#summary.push(
      `faults: ${[...this.#counts].map(([kind, count]) => `${kind} ${count}`).join(', ')}; slowest recovery ${slowest} ms`,
      `histories: ${histories.map(({ judge, operations }) => `${judge} ${operations}`).join(', ')}`,
      `resource: ${resource.writes} units written, ${resource.refused} stale writes refused, ${resource.effects} effects judged`,
      `holds: ${kept.kept} persistent acknowledged, ${kept.given} of them given back; ${long.long} long ones lived through the run`,
      `watch: ${seen?.events} events judged, ${this.#watch?.gaps} gaps`,
    )
  }

  async close(): Promise<void> {
    await this.#clients?.kill()
    await this.#watch?.close().catch(() => {})
    await this.#locks?.close().catch(() => {})
    await this.#world?.stop()
  }

  result(): EngineChaosResult {
    const faults = [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
    const { problems } = this
    const folder = problems.length > 0 ? this.#folder : undefined
    return { problems, operations: this.#operations, faults, summary: this.#summary, folder }
  }
}

function clientFaults(clients: ClientProcesses): EngineWorld['faults'] {
  return {
    'clients frozen': async (random) => {
      clients.pauseAll()
      await sleep(random.between(500, 4_500))
      clients.resumeAll()
    },
    'client killed': () => clients.killOne(),
  }
}
