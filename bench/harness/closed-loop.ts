import { createHistogram } from 'node:perf_hooks'

/** One round of one workload on one system. */
export interface Round {
  readonly opsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** What is measured: `pair` is one acquire and release by task number `task`, and resolves with the measured time. */
export interface Subject {
  readonly system: string
  pair(task: number): Promise<number>
}

const WARMUP_PART = 0.25

/** Closed loop: each of `tasks` tasks starts its next pair when its last one has ended. */
export async function measure(subject: Subject, tasks: number, seconds: number): Promise<Round> {
  await loop(subject, tasks, seconds * WARMUP_PART, () => {})
  const histogram = createHistogram()
  let pairs = 0
  const start = performance.now()
  await loop(subject, tasks, seconds, (ms) => {
    pairs += 1
    histogram.record(Math.max(1, Math.round(ms * 1_000)))
  })
  const elapsed = (performance.now() - start) / 1_000
  return {
    opsPerSecond: pairs / elapsed,
    p50Ms: histogram.percentile(50) / 1_000,
    p99Ms: histogram.percentile(99) / 1_000,
  }
}

async function loop(subject: Subject, tasks: number, seconds: number, record: (ms: number) => void): Promise<void> {
  const end = performance.now() + seconds * 1_000
  await Promise.all(
    Array.from({ length: tasks }, async (_, task) => {
      while (performance.now() < end) record(await subject.pair(task))
    }),
  )
}

/** The round with the median rate. */
export function medianRound(rounds: readonly Round[]): Round {
  const sorted = [...rounds].sort((a, b) => a.opsPerSecond - b.opsPerSecond)
  return sorted[Math.floor(sorted.length / 2)] as Round
}

export function rounded(value: number): number {
  return Number(value.toPrecision(4))
}
