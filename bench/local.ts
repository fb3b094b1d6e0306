import { measure, medianRound, type Round, rounded, type Subject } from './measure.js'
import { RETRY_MS, startRedis } from './redis.js'
import { startLeasehold } from './service.js'

interface Workload {
  readonly name: string
  readonly tasks: number
  readonly pick: 'distinct' | 'oneName'
}

const WORKLOADS: readonly Workload[] = [
  { name: 'local-1', tasks: 1, pick: 'distinct' },
  { name: 'local-64-distinct', tasks: 64, pick: 'distinct' },
  { name: 'local-64-one-name', tasks: 64, pick: 'oneName' },
]

/**
 * One machine, one client process with one connection, against a service process that flushes every commit, beside a
 * Redis that does the same. Rounds alternate between the two systems; the median round counts.
 * For `one-name` an operation is a hand-off, and the times are those from asking to having the lock.
 */
export async function local(options: { rounds: number; seconds: number }): Promise<void> {
  const leasehold = await startLeasehold()
  const redis = await startRedis()
  try {
    for (const workload of WORKLOADS) {
      const subjects: readonly Subject[] = [leasehold[workload.pick], redis[workload.pick]]
      const rounds = new Map<string, Round[]>(subjects.map((subject) => [subject.system, []]))
      for (let round = 0; round < options.rounds; round++) {
        for (const subject of subjects) {
          rounds.get(subject.system)?.push(await measure(subject, workload.tasks, options.seconds))
        }
      }
      report(workload, rounds)
    }
  } finally {
    await leasehold.stop()
    await redis.stop()
  }
}

function report(workload: Workload, rounds: ReadonlyMap<string, readonly Round[]>): void {
  const rates: number[] = []
  for (const [system, all] of rounds) {
    const { opsPerSecond, p50Ms, p99Ms } = medianRound(all)
    rates.push(opsPerSecond)
    const figures = { opsPerSecond: rounded(opsPerSecond), p50Ms: rounded(p50Ms), p99Ms: rounded(p99Ms) }
    const retry = system === 'redis' && workload.pick === 'oneName' ? { retryMs: RETRY_MS } : {}
    print({
      workload: workload.name,
      system,
      ...figures,
      rounds: all.map((one) => rounded(one.opsPerSecond)),
      ...retry,
    })
  }
  print({
    workload: workload.name,
    ratio: rounded((rates[0] as number) / (rates[1] as number)),
    of: 'leasehold to redis',
  })
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}
