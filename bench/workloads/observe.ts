// What an observer costs that is not there: npm run bench -- observe. One JSON object.
import { channel } from 'node:diagnostics_channel'
import { addObserver } from '@leasehold/client'
// The point at which the client asks whether anybody wants to know. It is no part of the package's interface.
import { begin } from '../../packages/client/src/observers.js'
import { createLocks } from 'leasehold'

const ROUNDS = 5
const CALLS = 2_000_000
const ACQUIRES = 3_000

/** Nanoseconds per call: the best of some rounds, because only noise makes it slower. */
function nanoseconds(call: () => unknown): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const begun = performance.now()
    for (let i = 0; i < CALLS; i++) call()
    best = Math.min(best, ((performance.now() - begun) * 1e6) / CALLS)
  }
  return Math.round(best * 10) / 10
}

/** The question that is asked at each of the points, about one acquire. */
export function measureQuestion(): { nobodyNs: number; nobodySubscribedNs: number } {
  const names: string[] = ['a']
  const describe = () => ({ kind: 'acquire' as const, call: names, names, ttlMs: 1, waitMs: 1 })
  const ask = () => begin('acquire', describe)
  const nobodyNs = nanoseconds(ask)
  const start = channel('leasehold:bench:start')
  const off = addObserver({ wants: () => start.hasSubscribers, begin: () => () => {} })
  const nobodySubscribedNs = nanoseconds(ask)
  off()
  return { nobodyNs, nobodySubscribedNs }
}

/** Acquire and release in this process: the fastest that there is, so that the share of an observer is the largest. */
async function measureAcquire(): Promise<number> {
  const locks = createLocks('memory:bench-observe')
  await locks.request('a', () => {})
  const begun = performance.now()
  for (let i = 0; i < ACQUIRES; i++) await locks.request('a', () => {})
  const microseconds = ((performance.now() - begun) * 1000) / ACQUIRES
  await locks.close()
  return Math.round(microseconds)
}

export async function observe(): Promise<void> {
  const question = measureQuestion()
  const acquireAndReleaseUs = await measureAcquire()
  console.log(JSON.stringify({ workload: 'observe', node: process.version, ...question, acquireAndReleaseUs }))
}
