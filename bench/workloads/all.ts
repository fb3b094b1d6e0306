import type { System } from '../harness/comparison.js'
import { diskLimits } from '../harness/disk-limits.js'
import { type AllResults, terminalBars } from '../draw/bars.js'
import { writeDocs } from '../draw/docs.js'
import { measure, type Round } from '../harness/closed-loop.js'
import { LEASEHOLD, LEASEHOLD_CLUSTER, PEERS } from '../systems/catalogue.js'
import { type Peer, startAll } from '../systems/peer.js'
import { spreadOf, writeResults } from '../harness/results-file.js'

const DISK_SECONDS = 1
/** Each system is busy for so long before anything is measured: compilers and caches of all are warm. */
const WARMUP_SECONDS = 2

interface Row {
  readonly title: string
  readonly tasks: number
  readonly pick: 'distinct' | 'oneName'
}

const TABLE: readonly Row[] = [
  { title: '1 client', tasks: 1, pick: 'distinct' },
  { title: '64 names', tasks: 64, pick: 'distinct' },
  { title: '512 names', tasks: 512, pick: 'distinct' },
  { title: 'hand-offs, 64 on 1 name', tasks: 64, pick: 'oneName' },
]

export interface AllOptions {
  readonly rounds: number
  readonly seconds: number
  /** Whether docs/performance.md and its picture get the figures. */
  readonly docs: boolean
  /** Whose name begins with one of these. Default: everything that is installed. */
  readonly only?: readonly string[] | undefined
}

/**
 * Pairs of acquire and release per second of everything that is installed, in turn, some rounds; the median counts. All
 * servers run the whole time, so that their idle cost is the same for all.
 */
export async function all(options: AllOptions): Promise<AllResults> {
  const { rounds, seconds, only } = options
  const asked = (peer: Peer): boolean => only === undefined || only.some((name) => peer.name.startsWith(name))
  const wanted = [LEASEHOLD, LEASEHOLD_CLUSTER, ...PEERS].filter(asked)
  const skipped = wanted.flatMap((peer) => {
    const why = peer.missing()
    return why === undefined ? [] : [{ name: peer.name, why }]
  })
  const peers = wanted.filter((peer) => peer.missing() === undefined)
  for (const { name, why } of skipped) tell(`left out: ${name}: ${why}`)
  const about = peers.map(aboutOf)
  const disk = diskLimits(Math.min(DISK_SECONDS, seconds))
  const { systems, stop } = await startAll(
    peers.map((peer) => () => {
      tell(`starting ${peer.name}`)
      return peer.start()
    }),
  )
  try {
    const table = await measureTable(peers, systems, { rounds, seconds })
    return { rounds, seconds, disk, systems: about, skipped, workloads: table }
  } finally {
    await stop()
  }
}

/** The same, drawn, and written to bench/results/all.json. */
export async function allWritten(options: AllOptions): Promise<void> {
  const results = await all(options)
  const file = writeResults('all', results)
  process.stdout.write(terminalBars(results))
  tell(`written: ${file}`)
  if (options.docs) writeDocs()
}

function aboutOf(peer: Peer) {
  const { name, how, lacks } = peer
  return { name, version: peer.version(), how, lacks }
}

async function measureTable(
  peers: readonly Peer[],
  systems: readonly System[],
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<AllResults['workloads']> {
  for (const [i, system] of systems.entries()) {
    tell(`warming up ${peers[i]?.name}`)
    await measure(system.distinct, 64, WARMUP_SECONDS)
  }
  const total = TABLE.length * rounds * systems.length
  let done = 0
  const workloads: AllResults['workloads'][number][] = []
  for (const { title, tasks, pick } of TABLE) {
    const measured: Round[][] = systems.map(() => [])
    for (let round = 1; round <= rounds; round++) {
      for (const [i, system] of systems.entries()) {
        const result = await measure(system[pick], tasks, seconds)
        measured[i]?.push(result)
        tell(`[${++done}/${total}] ${title}, round ${round}: ${peers[i]?.name} ${Math.round(result.opsPerSecond)}/s`)
      }
    }
    workloads.push({
      title,
      tasks,
      systems: measured.map((all, i) => ({
        name: peers[i]?.name as string,
        pairsPerSecond: spreadOf(all.map((one) => one.opsPerSecond)),
        p50Ms: spreadOf(all.map((one) => one.p50Ms)),
        p99Ms: spreadOf(all.map((one) => one.p99Ms)),
      })),
    })
  }
  return workloads
}

/** Progress; results go to the other channel. */
function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
