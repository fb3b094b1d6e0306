import { createHistogram } from 'node:perf_hooks'
import { type Command, Command as NewCommand } from 'commander'
import { numberOf } from '../argument-parsers.js'
import { note, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service-client.js'

const TASKS = 64
const SECONDS_MAX = 600
const WARMUP_PART = 0.25
const TTL = '30s'
const PREFIX = 'leasehold/bench'

interface BenchOptions extends ServiceOptions {
  readonly seconds: number
}

interface Locker {
  acquire(name: string, options: object): Promise<{ release(): Promise<unknown> }>
}

/** One workload: a number of tasks that lock the same name, or each its own. */
interface Workload {
  readonly workload: string
  readonly tasks: number
  readonly names: 'own' | 'one'
}

const WORKLOADS: readonly Workload[] = [
  { workload: 'one-client', tasks: 1, names: 'own' },
  { workload: 'distinct-names', tasks: TASKS, names: 'own' },
  { workload: 'hand-offs', tasks: TASKS, names: 'one' },
]

/** `bench`: measures how many locks per second this machine acquires from a service. */
export function benchCommand(): Command {
  return serviceCommand(new NewCommand('bench'))
    .description('acquire and release locks as fast as possible, and print one JSON object per workload')
    .option('--seconds <n>', 'how long each workload is measured', numberOf('the time', 1, SECONDS_MAX), 3)
    .addHelpText(
      'after',
      `
Without --url and LEASEHOLD_URL, it starts a service of its own in a temporary folder. An operation is one acquire and one
release; for hand-offs, the latency is that of the acquire. Locks are below ${PREFIX}.

Example:
  $ leasehold bench --url http://127.0.0.1:4100 --seconds 5`,
    )
    .action(async (options: BenchOptions) => {
      if (options.url !== undefined || process.env.LEASEHOLD_URL !== undefined) return await run(options)
      const { startService } = await import('../ephemeral-service.js')
      const service = await startService()
      note(`a service of its own, on ${service.url}`)
      try {
        return await run({ ...options, url: service.url })
      } finally {
        await service.stop()
      }
    })
}

async function run(options: BenchOptions): Promise<void> {
  const more = { ttl: TTL, wait: Number.POSITIVE_INFINITY } as const
  await withLocks(
    options,
    async (locks) => {
      await locks.connect()
      for (const workload of WORKLOADS) printJson(await measure(locks, workload, options.seconds))
    },
    more,
  )
}

async function measure(locks: Locker, { workload, tasks, names }: Workload, seconds: number): Promise<object> {
  await loop(locks, tasks, names, seconds * WARMUP_PART, () => {})
  const times = createHistogram()
  let pairs = 0
  const start = performance.now()
  await loop(locks, tasks, names, seconds, (ms) => {
    pairs++
    times.record(Math.max(1, Math.round(ms * 1000)))
  })
  const opsPerSecond = rounded((pairs * 1000) / (performance.now() - start))
  const [p50Ms, p99Ms] = [50, 99].map((part) => rounded(times.percentile(part) / 1000))
  return { workload, tasks, seconds, opsPerSecond, p50Ms, p99Ms }
}

/** Runs a closed loop: each task starts its next pair when the previous one has ended. */
async function loop(
  locks: Locker,
  tasks: number,
  names: Workload['names'],
  seconds: number,
  record: (ms: number) => void,
): Promise<void> {
  const end = performance.now() + seconds * 1000
  await Promise.all(
    Array.from({ length: tasks }, async (_, task) => {
      const name = names === 'one' ? `${PREFIX}/one` : `${PREFIX}/${task}`
      while (performance.now() < end) {
        const start = performance.now()
        const hold = await locks.acquire(name, {})
        const granted = performance.now()
        await hold.release()
        record((names === 'one' ? granted : performance.now()) - start)
      }
    }),
  )
}

function rounded(value: number): number {
  return Number(value.toPrecision(4))
}
