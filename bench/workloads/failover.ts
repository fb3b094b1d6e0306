import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks } from 'leasehold'
import { print } from '../harness/comparison.js'
import { type BenchMember, startMembers } from '../systems/leasehold.js'

const MEMBERS = 3
const KILLS_PER_ROUND = 3
const CATCH_UP_LIMIT_MS = 30_000
const POLL_MS = 25

interface Status {
  readonly role: string
  readonly commitIndex: number
  readonly members?: readonly { readonly name: string; readonly matchIndex?: number }[]
}

async function statusOf(member: BenchMember): Promise<Status | undefined> {
  try {
    const answer = await fetch(`${member.url}/v1/cluster`, { signal: AbortSignal.timeout(1000) })
    return answer.ok ? ((await answer.json()) as Status) : undefined
  } catch {
    return undefined
  }
}

/** The member that leads, once all others have what it has committed. */
async function leaderOf(members: readonly BenchMember[]): Promise<BenchMember> {
  const end = performance.now() + CATCH_UP_LIMIT_MS
  while (performance.now() < end) {
    for (const member of members) {
      const status = await statusOf(member)
      if (status?.role !== 'leader' || status.members?.length !== MEMBERS) continue
      const isBehind = status.members.some(({ matchIndex = 0 }) => matchIndex < status.commitIndex - 1)
      if (!isBehind) return member
    }
    await sleep(POLL_MS)
  }
  throw new Error(`no leader with ${MEMBERS} equal members within ${CATCH_UP_LIMIT_MS} ms`)
}

/** `kill -9` of the leader until the next acquire of a client that was connected succeeds; settings are the defaults. */
export async function failover(options: { rounds: number }): Promise<void> {
  const { members, cleanUp } = await startMembers(MEMBERS)
  const locks = createLocks(members.map(({ url }) => url).join(','), { clientName: 'bench' })
  const tookMs: number[] = []
  try {
    await locks.connect()
    for (let kill = 0; kill < options.rounds * KILLS_PER_ROUND; kill++) {
      const leader = await leaderOf(members)
      await (await locks.acquire(`failover/before-${kill}`)).release()
      const begun = performance.now()
      leader.child.kill('SIGKILL')
      const hold = await locks.acquire(`failover/after-${kill}`)
      tookMs.push(Math.round(performance.now() - begun))
      await hold.release()
      await leader.restart()
    }
    const sorted = tookMs.toSorted((a, b) => a - b)
    const medianMs = sorted[sorted.length >> 1] as number
    print({
      workload: 'failover',
      system: 'leasehold',
      medianMs,
      minMs: sorted[0],
      maxMs: sorted.at(-1),
      rounds: tookMs,
    })
  } finally {
    await locks.close()
    await Promise.all(members.map((member) => member.end()))
    cleanUp()
  }
}
