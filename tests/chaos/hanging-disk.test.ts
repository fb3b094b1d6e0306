import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from 'leasehold'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ChaosCluster } from './cluster.js'
import type { ClusterMember } from './member.js'

const HOOK = fileURLToPath(new URL('hanging-disk.mjs', import.meta.url))
/** `HANG_MS=60000`: the disk hangs for so long at least, not only until the others have gone on. */
const HANG_MS = Number(process.env.HANG_MS ?? 0)
/** Everything happens within seconds; how many depends on the load of the machine. */
const LIMIT_MS = 60_000
const TEST_LIMIT_MS = 5 * LIMIT_MS + HANG_MS
const LOOK_EVERY_MS = 20

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + LIMIT_MS
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${LIMIT_MS} ms`)
    await sleep(LOOK_EVERY_MS)
  }
}

describe('when the disk of a leader hangs within a flush', () => {
  let folder: string
  let cluster: ChaosCluster
  const unexpected: string[] = []

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-hanging-'))
    const onEnd = (member: ClusterMember, code: number | null): void => {
      unexpected.push(`${member.name} ended by itself with ${code}: ${member.logTail()}`)
    }
    cluster = await ChaosCluster.start(folder, 3, onEnd, ['--import', HOOK])
  }, TEST_LIMIT_MS)

  afterAll(async () => {
    await cluster?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test.each([
    ['process', 'a blocking one, in which the whole process stands still'],
    ['disk', 'one on another thread, beside which it keeps sending heartbeats'],
  ])(
    'another member leads, clients continue, and it returns as a follower: %s, %s',
    async (what) => {
      await using locks = await connect(cluster.url, { connectTimeout: LIMIT_MS })
      await using kept = await locks.acquire('kept', { ttl: '10m' })
      const old = await cluster.leader(LIMIT_MS)
      const others = cluster.members.filter((member) => member !== old)
      const [wish, hanging] = ['hang', 'hanging'].map((name) => join(old.place.folder, name)) as [string, string]
      let done = 0
      let ending = false
      const load = (async () => {
        await using busy = await connect(cluster.url, { connectTimeout: LIMIT_MS })
        while (!ending) {
          await busy.request('load', { wait: Number.POSITIVE_INFINITY }, () => {})
          done = performance.now()
        }
      })()
      try {
        await until('clients are served', () => done > 0)
        writeFileSync(wish, what)
        await until('it hangs', () => existsSync(hanging))
        const begun = performance.now()
        await until('another leads', async () => {
          const answers = await Promise.all(others.map((member) => cluster.ask(member)))
          return answers.some((answer) => answer?.role === 'leader')
        })
        const led = performance.now()
        await until('clients continue', () => done > led)
        console.log(`${what}: another leads after ${ms(begun, led)}, clients continue after ${ms(begun, done)}`)
        await sleep(HANG_MS - (performance.now() - begun))
        expect(existsSync(hanging)).toBe(true)
      } finally {
        rmSync(wish, { force: true })
        rmSync(hanging, { force: true })
      }
      await until('it follows, and has all', async () => {
        const leader = await cluster.leaderNow()
        const [own, answer] = [await cluster.ask(old), leader && (await cluster.ask(leader))]
        return own?.role === 'follower' && answer !== undefined && own.appliedIndex >= answer.commitIndex - 1
      })
      ending = true
      await load
      expect([kept.state, unexpected]).toEqual(['held', []])
    },
    TEST_LIMIT_MS,
  )
})

const ms = (from: number, to: number): string => `${Math.round(to - from)} ms`
