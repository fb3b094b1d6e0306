import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from 'leasehold'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ChaosCluster } from './cluster.js'
import type { ClusterMember } from './member.js'

const HOOKS = ['hanging-disk.mjs', 'disk-trace.mjs'].flatMap((name) => [
  '--import',
  fileURLToPath(new URL(name, import.meta.url)),
])
const LIMIT_MS = 60_000
const TEST_LIMIT_MS = 4 * LIMIT_MS
const LOOK_EVERY_MS = 20

interface Traced {
  readonly pid: number
  readonly what: 'write' | 'sync' | 'ack' | 'vote'
  readonly file?: string
  readonly at?: number
  readonly bytes?: number
  readonly index?: number
}

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + LIMIT_MS
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${LIMIT_MS} ms`)
    await sleep(LOOK_EVERY_MS)
  }
}

/** What a member has done, life by life. */
function livesOf(member: ClusterMember): Traced[][] {
  const lines = readFileSync(join(member.place.folder, 'trace'), 'utf8').split('\n').slice(0, -1)
  const lives = new Map<number, Traced[]>()
  for (const traced of lines.map((line) => JSON.parse(line) as Traced)) {
    lives.set(traced.pid, [...(lives.get(traced.pid) ?? []), traced])
  }
  return [...lives.values()]
}

describe('a member that is killed between a write to its log and the sync', () => {
  let folder: string
  let cluster: ChaosCluster
  const unexpected: string[] = []

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-unsynced-'))
    const onEnd = (member: ClusterMember, code: number | null): void => {
      unexpected.push(`${member.name} ended by itself with ${code}: ${member.logTail()}`)
    }
    cluster = await ChaosCluster.start(folder, 3, onEnd, HOOKS)
  }, TEST_LIMIT_MS)

  afterEach(async () => {
    await cluster?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test(
    'writes what it reads back again, and syncs it and the names in its folder, before it acknowledges or votes',
    async () => {
      await using locks = await connect(cluster.url, { connectTimeout: LIMIT_MS })
      await using kept = await locks.acquire('before', { ttl: '10m' })
      const leader = await cluster.leader(LIMIT_MS)
      const [killed, away] = cluster.members.filter((member) => member !== leader) as [ClusterMember, ClusterMember]
      // Now the leader needs the other one for whatever it acknowledges.
      await away.kill()
      const [wish, hanging] = ['hang', 'hanging'].map((name) => join(killed.place.folder, name)) as [string, string]
      writeFileSync(wish, 'process')
      const granted = locks.acquire('unsynced', { wait: LIMIT_MS, ttl: '10m' })
      granted.catch(() => {})
      await until('a sync hangs', () => existsSync(hanging))
      await killed.kill()
      rmSync(hanging, { force: true })
      const unsynced = livesOf(killed).at(-1)?.at(-1)
      expect(unsynced).toMatchObject({ what: 'write', file: expect.stringMatching(/^log-/) })
      killed.start()
      await using hold = await granted

      const lives = livesOf(killed)
      expect(lives.length).toBe(2)
      const second = lives[1] as Traced[]
      const first = second.findIndex(({ what }) => what === 'ack' || what === 'vote')
      expect(first).toBeGreaterThan(-1)
      const before = second.slice(0, first)
      const { file, at = 0, bytes = 0 } = unsynced as Traced
      const rewritten = before.findIndex(
        (one) => one.what === 'write' && one.file === file && one.at === at && (one.bytes ?? 0) >= bytes,
      )
      expect(rewritten, JSON.stringify({ unsynced, before })).toBeGreaterThan(-1)
      expect(before.slice(rewritten).map(({ what, file: name }) => `${what} ${name}`)).toContain(`sync ${file}`)
      const synced = before.filter(({ what }) => what === 'sync').map((one) => one.file ?? '')
      expect(synced).toEqual(expect.arrayContaining(['.', 'muster.json.tmp', expect.stringMatching(/^snapshot-/)]))
      // The names first: what they lead to is read afterwards.
      expect(synced.lastIndexOf('.', synced.indexOf('identity'))).toBeGreaterThan(-1)
      expect([kept.state, hold.state, unexpected]).toEqual(['held', 'held', []])
    },
    TEST_LIMIT_MS,
  )
})
