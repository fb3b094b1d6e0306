import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLocks, type Locks } from 'leasehold'
import { judgeHistories, judgeTokens } from './checks/history.js'
import { judgeKept, judgeLong } from './checks/kept.js'
import { judgeResource } from './checks/resource.js'
import { compareStates } from './checks/states.js'
import { WatchJudge } from './checks/watching.js'
import { ClientProcesses, PATIENCE_MS } from './clients.js'
import { ChaosCluster } from './cluster.js'
import { Faults, type SmallDisk } from './faults.js'
import { type ClusterMember, mountSmallDisk } from './member.js'
import { storms } from './plan.js'
import { Journal, readJournals } from './work/journal.js'

export interface ChaosOptions {
  readonly seed: number
  readonly members: number
  readonly durationMs: number
  readonly clients: number
  /** On a busy machine the run continues until so much has happened, for {@link PATIENCE_MS} at most. */
  readonly atLeast?: { readonly operations: number; readonly faults: number }
  /** Breaks the run off. */
  readonly signal?: AbortSignal
  say(line: string): void
}

export interface ChaosResult {
  readonly problems: readonly string[]
  readonly operations: number
  readonly faults: number
  /** How long after each storm's end an acquire succeeded. */
  readonly recoveriesMs: readonly number[]
  readonly summary: readonly string[]
  /** Kept when there are problems. */
  readonly folder: string | undefined
}

const HANGING_DISK = fileURLToPath(new URL('hanging-disk.mjs', import.meta.url))

/** Five election timeouts of at most 2 s each. */
export const RECOVERY_LIMIT_MS = 5 * 2_000
/** After this limit nothing more can be learnt from the run. */
const HOPELESS_MS = 90_000
const BEGIN_LIMIT_MS = 40_000
const REPAIR_LIMIT_MS = 90_000
const REPAIR_AGAIN_MS = 200
const SMALL_DISK_MB = 96
const PROBLEMS_SHOWN_MAX = 20

/** One run: storms of faults until the time is up, then the verdicts. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const folder = mkdtempSync(join(tmpdir(), `leasehold-chaos-${options.seed}-`))
  const run = new ChaosRun(options, folder)
  try {
    await Promise.race([
      run
        .begin()
        .then(() => run.storms())
        .then(() => run.finish()),
      aborted(options.signal),
    ])
  } catch (error) {
    run.problem(`the run broke off: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    await run.close()
  }
  const keep = run.problems.length > 0
  if (!keep) rmSync(folder, { recursive: true, force: true })
  return run.result(keep ? folder : undefined)
}

class ChaosRun {
  readonly problems: string[] = []
  readonly #recoveriesMs: number[] = []
  readonly #summary: string[] = []
  readonly #disks = new Map<string, SmallDisk>()
  #cluster: ChaosCluster | undefined
  #clients: ClientProcesses | undefined
  #watch: WatchJudge | undefined
  #journal: Journal | undefined
  #faults: Faults | undefined
  #locks: Locks | undefined
  #operations = 0
  #probes = 0

  readonly #options: ChaosOptions
  readonly #folder: string

  constructor(options: ChaosOptions, folder: string) {
    this.#options = options
    this.#folder = folder
  }

  problem(text: string): void {
    this.problems.push(text)
    this.#options.say(`PROBLEM ${text}`)
  }

  async begin(): Promise<void> {
    const { members, say, seed } = this.#options
    this.#mount()
    const onEnd = (member: ClusterMember, code: number | null, signal: string | null): void => {
      this.problem(`${member.name} ended by itself (${signal ?? `code ${code}`}):\n${member.logTail()}`)
    }
    const cluster = await ChaosCluster.start(this.#folder, members, onEnd, ['--import', HANGING_DISK])
    this.#cluster = cluster
    this.#journal = new Journal(join(this.#folder, 'harness.journal'))
    this.#watch = new WatchJudge(cluster.url)
    this.#locks = createLocks(cluster.url, { clientName: 'harness' })
    this.#clients = new ClientProcesses(this.#folder, cluster.url, seed, (name, code, signal) => {
      this.problem(`client ${name} ended by itself (${signal ?? `code ${code}`}), see ${name}.log`)
    })
    this.#faults = new Faults({ cluster, clients: this.#clients, journal: this.#journal, disks: this.#disks, say })
    for (let i = 0; i < this.#options.clients; i++) this.#clients.start()
    say(`${members} members at ${cluster.url}, ${this.#options.clients} client processes, folder ${this.#folder}`)
  }

  /** The last member gets a disk that can be filled, where this user may mount one. */
  #mount(): void {
    const name = `n${this.#options.members}`
    const folder = join(this.#folder, name)
    mkdirSync(folder)
    const disk = mountSmallDisk(folder, SMALL_DISK_MB)
    if (disk !== undefined) this.#disks.set(name, disk)
    else this.#options.say('no full disks in this run: this user may not mount a small one')
  }

  async storms(): Promise<void> {
    const { seed, members, durationMs, say } = this.#options
    const end = performance.now() + durationMs
    let number = 0
    for (const storm of storms(seed, members)) {
      if (performance.now() > end && (this.#isEnough() || performance.now() > end + PATIENCE_MS)) return
      this.#options.signal?.throwIfAborted()
      say(`storm ${++number}`)
      await this.#faultsMade.play(storm)
      await this.#recover()
      await sleep(storm.calmMs)
    }
  }

  #isEnough(): boolean {
    const { operations = 0, faults = 0 } = this.#options.atLeast ?? {}
    const made = [...this.#faultsMade.counts.values()].reduce((sum, count) => sum + count, 0)
    return made >= faults && (this.#clients as ClientProcesses).operations >= operations
  }

  get #faultsMade(): Faults {
    return this.#faults as Faults
  }

  /** Everything is whole again; the service must be, soon after. */
  async #recover(): Promise<void> {
    const cluster = this.#cluster as ChaosCluster
    const { say } = this.#options
    cluster.links.healAll()
    const { wiped } = this.#faultsMade
    const rest = cluster.members.filter((member) => !wiped.has(member))
    const begun = performance.now()
    const answers = await Promise.all(rest.map((member) => member.answers(BEGIN_LIMIT_MS)))
    for (const [i, answer] of answers.entries()) {
      if (!answer) this.problem(`${rest[i]?.name} does not answer ${BEGIN_LIMIT_MS} ms after its start`)
    }
    const healed = performance.now()
    const late = setTimeout(() => void this.#sayStandings(), RECOVERY_LIMIT_MS)
    await this.#probe(cluster.url).finally(() => clearTimeout(late))
    const tookMs = Math.round(performance.now() - healed)
    this.#recoveriesMs.push(tookMs)
    if (tookMs > RECOVERY_LIMIT_MS) this.problem(`an acquire succeeded only ${tookMs} ms after the end of the faults`)
    for (const member of wiped) await this.#replace(member)
    const different = await compareStates(cluster.members)
    if (different !== undefined) this.problem(different)
    say(
      `  over: all began in ${Math.round(healed - begun)} ms, an acquire succeeded ${tookMs} ms later, states ${different === undefined ? 'equal' : 'DIFFERENT'}`,
    )
  }

  /** What every member says, when the service does not come back. */
  async #sayStandings(): Promise<void> {
    const cluster = this.#cluster as ChaosCluster
    for (const member of cluster.members)
      this.#options.say(`  ${member.name} says ${JSON.stringify(await cluster.ask(member))}`)
  }

  /** A client that knows nothing yet takes a lock. */
  async #probe(url: string): Promise<void> {
    const end = performance.now() + HOPELESS_MS
    const name = `probe/${++this.#probes}`
    for (;;) {
      const problem = await tryToAcquire(url, name)
      if (problem === undefined) return
      if (performance.now() > end) throw problem
    }
  }

  /** What an operator does after a disk was lost: the old member goes, the new one is added and promoted. */
  async #replace(member: ClusterMember): Promise<void> {
    const cluster = this.#cluster as ChaosCluster
    const begun = performance.now()
    for (const step of ['remove', 'add', 'promote'] as const) {
      for (;;) {
        const refusal = await cluster.change(step, member.name)
        if (refusal === undefined) break
        if (await this.#isDone(step, member.name)) break
        if (performance.now() - begun > REPAIR_LIMIT_MS)
          throw new Error(`${step} ${member.name} after a wiped disk: ${refusal}`)
        await sleep(REPAIR_AGAIN_MS)
      }
    }
    this.#faultsMade.wiped.delete(member)
    if (!(await member.answers(BEGIN_LIMIT_MS)))
      this.problem(`${member.name} does not answer after its disk was replaced`)
    this.#options.say(`  ${member.name} was removed, added and promoted in ${Math.round(performance.now() - begun)} ms`)
  }

  /** A change whose answer was lost may have happened. */
  async #isDone(step: 'remove' | 'add' | 'promote', name: string): Promise<boolean> {
    const cluster = this.#cluster as ChaosCluster
    const leader = await cluster.leaderNow()
    const members = leader === undefined ? undefined : (await cluster.ask(leader))?.members
    if (members === undefined) return false
    const found = members.find((member) => member.name === name)
    if (step === 'remove') return found === undefined
    return step === 'add' ? found !== undefined && found.role !== 'voter' : found?.role === 'voter'
  }

  async finish(): Promise<void> {
    const { say } = this.#options
    const locks = this.#locks as Locks
    const clients = this.#clients as ClientProcesses
    const { alive } = clients
    const long = await judgeLong(locks, readJournals(clients.journals), alive)
    const late = await clients.end()
    for (const name of late) this.problem(`client ${name} did not come to its end by itself`)
    await this.#lastLook(locks)
    await this.#watch?.close()
    const recorded = readJournals([
      ...clients.journals,
      { process: 'harness', file: join(this.#folder, 'harness.journal') },
    ])
    say('judging')
    const kept = await judgeKept(locks, recorded)
    const histories = judgeHistories(recorded)
    const resource = judgeResource(clients.resourceFile, recorded)
    const tokens = judgeTokens(recorded)
    const problems = [
      ...long.problems,
      ...kept.problems,
      ...resource.problems,
      ...tokens,
      ...(this.#watch?.judge.problems ?? []),
    ]
    for (const problem of problems.slice(0, PROBLEMS_SHOWN_MAX)) this.problem(problem)
    for (const { problem } of histories) if (problem !== undefined) this.problem(problem)
    this.#operations = histories.reduce((sum, { operations }) => sum + operations, 0)
    const errors = new Map<string, number>()
    for (const note of recorded.notes) {
      if (note.note === 'error')
        errors.set(`${note.of}: ${note.code}`, (errors.get(`${note.of}: ${note.code}`) ?? 0) + 1)
    }
    this.#summary.push(
      `histories: ${histories.map(({ judge, operations, problem }) => `${judge} ${operations}${problem === undefined ? '' : ' BAD'}`).join(', ')}`,
      `resource: ${resource.writes} units written, ${resource.refused} stale writes refused, ${resource.effects} effects judged`,
      `holds: ${kept.kept} persistent acknowledged, ${kept.given} of them given back; ${long.long} long ones lived through the run`,
      `watch: ${this.#watch?.judge.events} events judged, ${this.#watch?.gaps} gaps`,
      `answers that were errors: ${[...errors].map(([what, count]) => `${what} ${count}`).join(', ') || 'none'}`,
    )
  }

  /** The checks after the last storm. */
  async #lastLook(locks: Locks): Promise<void> {
    const journal = this.#journal as Journal
    for (const key of ['register/a', 'register/b']) {
      const call = journal.invoke({ judge: 'register', op: 'read', key })
      call.ok({ result: ((await locks.register(key).get())?.value ?? null) as string | null })
    }
    for (const key of ['unit/a', 'unit/b', 'unit/c']) {
      const call = journal.invoke({ judge: 'fenced-mutex', op: 'acquire', key, owner: 'harness' })
      const hold = await locks.acquire(key)
      call.ok({ token: hold.token })
      const end = journal.invoke({ judge: 'fenced-mutex', op: 'release', key, owner: 'harness', token: hold.token })
      if ((await hold.release()).released) end.ok()
      else end.unknown()
    }
  }

  async close(): Promise<void> {
    await this.#clients?.kill()
    await this.#watch?.close().catch(() => {})
    await this.#locks?.close().catch(() => {})
    await this.#cluster?.close()
    this.#journal?.close()
    for (const [name, disk] of this.#disks) {
      if (this.problems.length > 0)
        writeFileSync(join(this.#folder, `${name}.log`), this.#cluster?.memberNamed(name).logTail() ?? '')
      disk.unmount()
    }
  }

  result(folder: string | undefined): ChaosResult {
    const counts = [...(this.#faults?.counts ?? [])]
    const faults = counts.reduce((sum, [, count]) => sum + count, 0)
    const sorted = this.#recoveriesMs.toSorted((a, b) => a - b)
    return {
      problems: this.problems,
      operations: this.#operations,
      faults,
      recoveriesMs: sorted,
      summary: [
        `faults: ${faults} (${counts.map(([kind, count]) => `${kind} ${count}`).join(', ')})`,
        `recovery after ${sorted.length} storms: median ${sorted[sorted.length >> 1] ?? '-'} ms, most ${sorted.at(-1) ?? '-'} ms, limit ${RECOVERY_LIMIT_MS} ms`,
        ...this.#summary,
      ],
      folder,
    }
  }
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
}

/** One attempt of a new client; resolves with what went wrong. */
async function tryToAcquire(url: string, name: string): Promise<unknown> {
  const locks = createLocks(url, { clientName: 'probe', connectTimeout: '2s' })
  try {
    const hold = await locks.acquire(name, { wait: '2s' })
    await hold.release()
    return undefined
  } catch (error) {
    return error
  } finally {
    await locks.close()
  }
}
