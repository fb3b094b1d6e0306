import { measure, medianRound, type Round, rounded, type Subject } from './closed-loop.js'

/** A system under load: `distinct` gives every task a name of its own, `oneName` all tasks one. */
export interface System {
  readonly distinct: Subject
  readonly oneName: Subject
  stop(): Promise<void>
}

export interface Workload {
  readonly name: string
  readonly tasks: number
  readonly pick: 'distinct' | 'oneName'
}

export function workloads(place: string): readonly Workload[] {
  return [
    { name: `${place}-1`, tasks: 1, pick: 'distinct' },
    { name: `${place}-64-distinct`, tasks: 64, pick: 'distinct' },
    { name: `${place}-64-one-name`, tasks: 64, pick: 'oneName' },
  ]
}

/**
 * Rounds alternate between the systems, the first of which is ours; the median round counts. With `oneName` an operation
 * is a hand-off, and the times are those from asking to having the lock.
 */
export async function compare(
  systems: readonly System[],
  list: readonly Workload[],
  options: { rounds: number; seconds: number },
): Promise<void> {
  for (const workload of list) {
    const subjects = systems.map((system) => system[workload.pick])
    const rounds = new Map<string, Round[]>(subjects.map((subject) => [subject.system, []]))
    for (let round = 0; round < options.rounds; round++) {
      for (const subject of subjects) {
        rounds.get(subject.system)?.push(await measure(subject, workload.tasks, options.seconds))
      }
    }
    report(workload, rounds)
  }
}

function report(workload: Workload, rounds: ReadonlyMap<string, readonly Round[]>): void {
  const rates: number[] = []
  for (const [system, all] of rounds) {
    const { opsPerSecond, p50Ms, p99Ms } = medianRound(all)
    rates.push(opsPerSecond)
    const figures = { opsPerSecond: rounded(opsPerSecond), p50Ms: rounded(p50Ms), p99Ms: rounded(p99Ms) }
    print({ workload: workload.name, system, ...figures, rounds: all.map((one) => rounded(one.opsPerSecond)) })
  }
  const [ours, ...others] = [...rounds.keys()]
  for (const [i, other] of others.entries()) {
    const ratio = rounded((rates[0] as number) / (rates[i + 1] as number))
    print({ workload: workload.name, ratio, of: `${ours} to ${other}` })
  }
}

/** One line of JSON for each figure. */
export function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}
