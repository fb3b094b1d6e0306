import { execFileSync, type ExecFileSyncOptionsWithStringEncoding } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { InvalidError } from '@leasehold/core'
import { scenarioOfPlan } from './as-scenario.js'
import { type FuzzResult, fuzz, type Progress, violationText } from './fuzz.js'
import { faultText } from './drawn-fault.js'
import { type Plan, planOf, type Profile, PROFILES } from './plan.js'
import { type Outcome, runPlan } from './run-plan.js'
import { shrink } from './shrink.js'

/** Lines of the trace that are shown of a run which broke an invariant. */
const TAIL_LINES = 40
const SHRINK_RUNS_MAX = 150
/** Progress is shown at most this often. */
const PROGRESS_MS = 5000

export interface ExploreCommand {
  /** `A..B`, or one seed. */
  readonly seeds: string
  readonly profile?: string
  readonly members?: string
  readonly json?: boolean
  /** Keeps the progress in this file, and continues from it. */
  readonly state?: string
  /** Where the shrunk scenario goes; default `lab-SEED.json`. */
  readonly out?: string
}

export interface CommandIo {
  readonly print: (line: string) => void
  /** For progress. */
  readonly note: (line: string) => void
  /** Whether a stop was requested. */
  readonly stopping: () => boolean
}

/** `leasehold lab explore`: returns the exit code. */
export async function exploreCommand(command: ExploreCommand, io: CommandIo): Promise<0 | 1> {
  const [from, to] = rangeOf(command.seeds)
  const profile = profileOf(command.profile)
  const members = membersOf(command.members)
  const before = command.state === undefined ? undefined : stateOf(command.state, profile, members)
  const began = performance.now()
  const usedBefore = process.cpuUsage()
  const first = Math.max(from, before?.next ?? from)
  let shownAt = Number.NEGATIVE_INFINITY
  const result = await fuzz(
    {
      from,
      to,
      profile,
      ...(members === undefined ? {} : { members }),
      progress: async (progress) => {
        if (command.state !== undefined) keep(command.state, profile, members, progress)
        const now = performance.now()
        if (now - shownAt >= PROGRESS_MS) {
          shownAt = now
          io.note(progressText(progress, to, (now - began) / 1000, progress.next - first))
        }
        // A signal can only be heard between two turns of the event loop.
        await new Promise((resolve) => setImmediate(resolve))
        return !io.stopping()
      },
    },
    before,
  )
  // Processor time: how busy the machine is with other things says nothing about the lab.
  const { user, system } = process.cpuUsage(usedBefore)
  const simulatedHours = (result.simulatedMs - (before?.simulatedMs ?? 0)) / 3_600_000
  const hoursPerSecond = simulatedHours / ((user + system) / 1e6)
  const summary = { profile, ...summaryOf(result), hoursPerSecond }
  if (!result.found) {
    io.print(command.json ? JSON.stringify(summary) : endText(result, to, hoursPerSecond))
    return 0
  }
  await tellFound(result.found, command, io, summary)
  return 1
}

/** `leasehold lab replay`: a seed, or a scenario file that the explorer wrote; shows the whole trace. */
export async function replayCommand(
  command: {
    readonly seed?: string
    readonly file?: string
    readonly profile?: string
    readonly members?: string
    readonly json?: boolean
  },
  io: CommandIo,
): Promise<0 | 1> {
  const plan = command.file === undefined ? planOfSeed(command) : planOfFile(command.file)
  const outcome = await runPlan(plan, command.json ? {} : { log: io.print })
  if (command.json) io.print(JSON.stringify({ plan, outcome }))
  else {
    for (const violation of outcome.violations) io.print(violationText(violation))
    io.print(`trace ${outcome.traceHash}, ${outcome.events} events, ${(outcome.simulatedMs / 1000).toFixed(3)} s`)
  }
  return outcome.violations.length > 0 ? 1 : 0
}

async function tellFound(
  { plan, outcome }: { readonly plan: Plan; readonly outcome: Outcome },
  command: ExploreCommand,
  io: CommandIo,
  summary: Record<string, unknown>,
): Promise<void> {
  const replay = replayLine(plan, command.members)
  const tail: string[] = []
  await runPlan(plan, {
    log: (line) => {
      tail.push(line)
      if (tail.length > TAIL_LINES) tail.shift()
    },
  })
  if (!command.json) {
    io.print(`seed ${plan.seed}, profile ${plan.profile}, ${commit()}`)
    for (const violation of outcome.violations) io.print(violationText(violation))
    io.print(`the last ${tail.length} lines of its trace:`)
    for (const line of tail) io.print(`  ${line}`)
    io.print(`replay: ${replay}`)
  }
  const progress = (text: string): void => io.note(`shrinking, run ${text}`)
  const small = await shrink(plan, outcome, { run: (smaller) => runPlan(smaller), runsMax: SHRINK_RUNS_MAX, progress })
  const file = command.out ?? `lab-${plan.seed}.json`
  writeFileSync(file, `${JSON.stringify(scenarioOfPlan(small.plan, small.outcome), null, 2)}\n`)
  if (command.json) {
    const { violations, traceHash } = outcome
    io.print(
      JSON.stringify({
        ...summary,
        seed: plan.seed,
        commit: commit(),
        violations,
        traceHash,
        tail,
        replay,
        scenario: file,
      }),
    )
    return
  }
  io.print(
    `shrunk in ${small.runs} runs to ${small.plan.faults.length} faults and ${small.plan.clients} clients: ${file}`,
  )
  for (const fault of small.plan.faults) io.print(`  ${faultText(fault)}`)
}

function replayLine(plan: Plan, members: string | undefined): string {
  const more = members === undefined ? '' : ` --members ${members}`
  return `npx leasehold lab replay --seed ${plan.seed} --profile ${plan.profile}${more}`
}

function summaryOf(result: FuzzResult): Record<string, unknown> {
  const { seeds, simulatedMs, entries, undecided, faults, done } = result
  return { seeds, simulatedHours: simulatedMs / 3_600_000, entries, undecided, faults, done }
}

function progressText(progress: Progress, to: number, seconds: number, run: number): string {
  const left = to - progress.next + 1
  const leftSeconds = run > 0 ? (seconds / run) * left : 0
  return `${progress.seeds} seeds, ${(progress.simulatedMs / 3_600_000).toFixed(2)} simulated hours; ${left} seeds left, about ${timeWords(leftSeconds)}`
}

function endText(result: FuzzResult, to: number, hoursPerSecond: number): string {
  const { seeds, simulatedMs, next, undecided } = result
  const hours = simulatedMs / 3_600_000
  const stopped = next <= to ? `; stopped before seed ${next}` : ''
  const open = undecided > 0 ? `, ${undecided} histories undecided` : ''
  return `${seeds} seeds without a violation, ${hours.toFixed(2)} simulated hours, ${hoursPerSecond.toFixed(4)} per second of processor time${open}${stopped}`
}

function rangeOf(text: string): readonly [number, number] {
  const match = /^(\d{1,9})(?:\.\.(\d{1,9}))?$/.exec(text)
  const from = Number(match?.[1])
  const to = Number(match?.[2] ?? match?.[1])
  if (!match || to < from) throw new InvalidError(`--seeds is A..B, such as 1..200, not ${text}`)
  return [from, to]
}

function profileOf(text = 'swarm'): Profile {
  const profile = PROFILES.find((one) => one === text)
  if (profile === undefined) throw new InvalidError(`--profile is one of ${PROFILES.join(', ')}, not ${text}`)
  return profile
}

function membersOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^[1-9]$/.test(text)) throw new InvalidError(`--members is 1 to 9, not ${text}`)
  return Number(text)
}

function planOfSeed(command: { readonly seed?: string; readonly profile?: string; readonly members?: string }): Plan {
  if (command.seed === undefined) throw new InvalidError('what? give --seed N, or a file')
  return planOf(rangeOf(command.seed)[0], profileOf(command.profile), membersOf(command.members))
}

function planOfFile(file: string): Plan {
  const { system } = JSON.parse(readFileSync(file, 'utf8')) as { system?: { kind?: string; plan?: Plan } }
  if (system?.kind !== 'explored' || !system.plan) throw new InvalidError(`${file} is no scenario of the explorer`)
  return system.plan
}

interface State extends Progress {
  readonly profile: Profile
  readonly members: number | null
}

function stateOf(file: string, profile: Profile, members: number | undefined): Progress | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const state = JSON.parse(text) as State
  if (state.profile !== profile || state.members !== (members ?? null)) {
    throw new InvalidError(`${file} is of profile ${state.profile} and ${state.members ?? 'any number of'} members`)
  }
  return state
}

function keep(file: string, profile: Profile, members: number | undefined, progress: Progress): void {
  writeFileSync(file, JSON.stringify({ profile, members: members ?? null, ...progress }))
}

/** The commit of the code that runs, or the version of the package where there is no repository. */
function commit(): string {
  try {
    const options: ExecFileSyncOptionsWithStringEncoding = {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }
    return `commit ${execFileSync('git', ['rev-parse', '--short', 'HEAD'], options).trim()}`
  } catch {
    return 'commit unknown'
  }
}

/** A time to come, as exact as anybody knows it. */
function timeWords(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`
}
