import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocks } from 'leasehold'
import { compare, type System, type Workload } from '../harness/comparison.js'
import { startAll } from '../systems/peer.js'
import { startLeasehold } from '../systems/leasehold.js'

const WORKLOADS: readonly Workload[] = [
  { name: 'embedded-1', tasks: 1, pick: 'distinct' },
  { name: 'embedded-64-distinct', tasks: 64, pick: 'distinct' },
]

/** The engine in this process beside a server in a process of its own; both flush every commit. */
export async function embedded(options: { rounds: number; seconds: number }): Promise<void> {
  const { systems, stop } = await startAll([startEmbedded, () => startLeasehold()])
  try {
    await compare(systems, WORKLOADS, options)
  } finally {
    await stop()
  }
}

async function startEmbedded(): Promise<System> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-embedded-'))
  const locks = createLocks(`file:${folder}`, { ttl: '30s', wait: Number.POSITIVE_INFINITY })
  const stop = async (): Promise<void> => {
    await locks.close()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await locks.connect()
  } catch (error) {
    await stop()
    throw error
  }
  const pair = async (name: string): Promise<number> => {
    const start = performance.now()
    const hold = await locks.acquire(name)
    await hold.release()
    return performance.now() - start
  }
  const system = 'leasehold embedded'
  return {
    distinct: { system, pair: (task) => pair(`bench/${task}`) },
    oneName: { system, pair: () => pair('bench/one') },
    stop,
  }
}
