import type { Millis, Result, SessionId } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { ACKNOWLEDGED_FILE } from '../../src/rollback/acknowledged-file.js'
import { inspect } from '../../src/inspect.js'
import type { Replica } from '../../src/replica.js'
import { CONTRADICTED } from '../../src/storage/storage.js'
import { Cluster, type Site } from '../support/cluster.js'
import { SimDisk } from '../support/sim-disk.js'
import { acquire } from '../support/world.js'

const SET_BACK = /the disk of this member was set back: n\d \(node \d+\) remembers that entry \d+ of term \d+ was ack/
const LONG_ENOUGH_MS = 30_000

class Service extends Cluster {
  session!: SessionId
  private request = 0

  /** A leader, and a session. */
  begin(): Site {
    const leader = this.elect()
    const nonce = '5a'.repeat(16)
    const ttlMs = 3_600_000 as Millis
    const opened = this.submit(leader, { kind: 'openSession', nonce, secret: nonce, ttlMs, client: '', local: false })
    this.session = (opened as Extract<Result, { kind: 'opened' }>).session
    return leader
  }

  /** Acquires `count` locks and returns the last token. */
  take(leader: Site, count = 1): number {
    let token = 0
    for (let i = 0; i < count; i++) {
      const result = this.submit(leader, acquire(this.session, ++this.request, `l${this.request}`))
      token = Number((result as Extract<Result, { kind: 'granted' }>).grant.hold)
    }
    return token
  }

  others(...but: readonly Site[]): readonly [Site, Site] {
    return this.sites.filter((site) => !but.includes(site)) as unknown as [Site, Site]
  }

  /** All running members have applied the same. */
  settle(sites: readonly Site[] = this.sites): void {
    this.until(() => new Set(sites.map(({ replica }) => replica?.status.appliedIndex)).size === 1)
  }

  /** Cuts a member's power and replaces its disk with `disk`. */
  setBack(site: Site, disk: SimDisk): void {
    this.crash(site)
    Object.assign(site, { disk })
  }
}

const failureOf = ({ replica }: Site): string | undefined => replica?.status.failure
const failuresOf = (cluster: Cluster): unknown[] =>
  cluster.sites.map(failureOf).filter((failure) => failure !== undefined)

describe('a member whose disk was set back', () => {
  it('stops when the leader remembers, and does not start on that folder again', () => {
    const cluster = new Service(3)
    const leader = cluster.begin()
    const [victim, other] = cluster.others(leader)
    cluster.take(leader, 5)
    cluster.settle()
    const copy = victim.disk.clone()
    cluster.take(leader, 5)
    cluster.settle()
    cluster.setBack(victim, copy)
    cluster.start(victim)
    cluster.until(() => failureOf(victim) !== undefined)
    expect(failureOf(victim)).toMatch(SET_BACK)
    expect(failureOf(victim)).toMatch(/the log here ends at entry \d+ of term \d+/)
    expect([failureOf(leader), failureOf(other)]).toEqual([undefined, undefined])
    expect(cluster.take(leader)).toBeGreaterThan(0)
    cluster.advance(1000)
    expect(victim.disk.list()).toContain(CONTRADICTED)
    cluster.crash(victim)
    expect(() => cluster.start(victim)).toThrow(/sim contradicts its cluster: the disk of this member was set back/)
  })

  it('is rejected by a lagging member that remembers, while the leader that knows is down', () => {
    const cluster = new Service(3)
    const leader = cluster.begin()
    const [victim, lagging] = cluster.others(leader)
    cluster.take(leader, 3)
    cluster.settle()
    const copy = victim.disk.clone()
    // The lagging member learns what the victim acknowledges, but stores none of it: its disk is stuck.
    cluster.stalled.add(lagging)
    cluster.take(leader, 3)
    cluster.advance(1000)
    cluster.crash(leader)
    cluster.setBack(victim, copy)
    cluster.stalled.clear()
    cluster.isolate(lagging)
    cluster.start(victim)
    cluster.advance(100)
    cluster.heal()
    cluster.until(() => failureOf(victim) !== undefined, LONG_ENOUGH_MS)
    expect(failureOf(victim)).toMatch(SET_BACK)
    expect(cluster.leader).toBeUndefined()
    // The one that knows returns, and the two that have everything serve.
    cluster.start(leader)
    const next = cluster.elect()
    expect(cluster.take(next)).toBeGreaterThan(0)
    expect([failureOf(leader), failureOf(lagging)]).toEqual([undefined, undefined])
  })

  it('is detected after the members that remember it were restarted', () => {
    const cluster = new Service(3)
    const leader = cluster.begin()
    const [victim, other] = cluster.others(leader)
    cluster.take(leader, 3)
    cluster.settle()
    const copy = victim.disk.clone()
    cluster.take(leader, 3)
    // Saved every 10 s.
    cluster.advance(25_000)
    for (const site of cluster.sites) expect(site.disk.list()).toContain(ACKNOWLEDGED_FILE)
    cluster.crash(leader)
    cluster.crash(other)
    cluster.setBack(victim, copy)
    cluster.start(victim)
    cluster.advance(5_000)
    expect(failureOf(victim)).toBeUndefined()
    cluster.start(other)
    cluster.until(() => failureOf(victim) !== undefined, LONG_ENOUGH_MS)
    expect(failureOf(victim)).toMatch(SET_BACK)
    cluster.advance(5_000)
    expect(cluster.leader).toBeUndefined()
  })

  it('stops also if it led before', () => {
    const cluster = new Service(3)
    const leader = cluster.begin()
    cluster.take(leader, 3)
    cluster.settle()
    const copy = leader.disk.clone()
    cluster.take(leader, 3)
    // The others learn it with the next heartbeat.
    cluster.advance(100)
    cluster.setBack(leader, copy)
    cluster.start(leader)
    cluster.until(() => failureOf(leader) !== undefined, LONG_ENOUGH_MS)
    expect(failureOf(leader)).toMatch(SET_BACK)
    const next = cluster.elect()
    expect(cluster.take(next)).toBeGreaterThan(0)
    expect(failuresOf(cluster)).toHaveLength(1)
  })

  it('stops also after delayed, duplicated and lost frames', () => {
    for (let seed = 1; seed <= 10; seed++) {
      const cluster = new Service(3, seed)
      const leader = cluster.begin()
      const [victim] = cluster.others(leader)
      cluster.take(leader, 2)
      cluster.settle()
      const copy = victim.disk.clone()
      cluster.take(leader, 4)
      cluster.settle()
      cluster.lossPercent = 20
      cluster.delayMaxMs = 600
      cluster.setBack(victim, copy)
      cluster.start(victim)
      cluster.until(() => failureOf(victim) !== undefined, LONG_ENOUGH_MS)
      expect(failureOf(victim)).toMatch(SET_BACK)
      cluster.advance(LONG_ENOUGH_MS)
      expect(failuresOf(cluster)).toHaveLength(1)
    }
  })
})

describe('a healthy member', () => {
  it('may lose uncommitted acknowledged entries and restart before anything else is committed', () => {
    const cluster = new Service(5, 3, { blockingWrites: false })
    const old = cluster.begin()
    cluster.take(old, 3)
    cluster.settle()
    const [follower, ...majority] = cluster.sites.filter((site) => site !== old) as [Site, ...Site[]]
    const link = (a: Site, b: Site): [string, string] => [
      `${a.info.node}>${b.info.node}`,
      `${b.info.node}>${a.info.node}`,
    ]
    for (const a of [old, follower]) for (const b of majority) for (const one of link(a, b)) cluster.cut.add(one)
    for (let i = 100; i < 105; i++) old.replica?.submit(acquire(cluster.session, i, `lost${i}`), () => {})
    cluster.advance(300)
    const { last } = inspect(follower.replica as Replica).raft
    expect(last).toBeGreaterThan(follower.replica?.status.commitIndex as number)
    cluster.until(() => majority.some(({ replica }) => replica?.status.role === 'leader'))
    const next = majority.find(({ replica }) => replica?.status.role === 'leader') as Site
    // The new leader's first entry takes their place at the follower, and is not committed: two of five have it.
    for (const site of majority) if (site !== next) cluster.stalled.add(site)
    for (const one of link(next, follower)) cluster.cut.delete(one)
    const truncated = () => inspect(follower.replica as Replica).termAt(last) !== 1
    cluster.until(truncated, 3000)
    cluster.advance(20)
    cluster.crash(follower)
    cluster.start(follower)
    expect(truncated()).toBe(true)
    expect(follower.replica?.status.commitIndex).toBeLessThan(last)
    cluster.advance(300)
    expect(failuresOf(cluster)).toEqual([])
    cluster.stalled.clear()
    cluster.heal()
    cluster.elect()
    cluster.settle()
    expect(failuresOf(cluster)).toEqual([])
  })

  it('may lose uncommitted acknowledged entries', () => {
    const cluster = new Service(5, 3)
    const old = cluster.begin()
    cluster.take(old, 3)
    cluster.settle()
    const [follower, ...majority] = cluster.sites.filter((site) => site !== old) as [Site, ...Site[]]
    // Cut off with one follower, the leader appends what no majority acknowledges.
    for (const a of [old, follower]) {
      for (const b of majority) {
        cluster.cut.add(`${a.info.node}>${b.info.node}`)
        cluster.cut.add(`${b.info.node}>${a.info.node}`)
      }
    }
    const before = follower.replica?.status.commitIndex as number
    const lost: Result[] = []
    const session = cluster.session
    for (let i = 100; i < 103; i++) old.replica?.submit(acquire(session, i, `lost${i}`), (one) => lost.push(one))
    cluster.advance(400)
    cluster.until(() => majority.some(({ replica }) => replica?.status.role === 'leader'))
    const next = majority.find(({ replica }) => replica?.status.role === 'leader') as Site
    cluster.until(() => next.replica?.status.appliedIndex === next.replica?.status.commitIndex)
    // It has acknowledged them, and restarts with them; then it truncates them.
    cluster.crash(follower)
    cluster.start(follower)
    cluster.heal()
    cluster.elect()
    cluster.settle()
    expect(follower.replica?.status.commitIndex).toBeGreaterThan(before)
    expect(lost).toMatchObject(Array(lost.length).fill({ code: 'unknown-outcome' }))
    cluster.crash(follower)
    cluster.start(follower)
    cluster.elect()
    cluster.settle()
    expect(failuresOf(cluster)).toEqual([])
  })

  it('is never stopped by delayed, duplicated or reordered frames while members crash and compact', () => {
    for (let seed = 1; seed <= 12; seed++) {
      const cluster = new Service(3, seed, { snapshotBytes: 4096 })
      cluster.begin()
      cluster.lossPercent = seed % 3 === 0 ? 10 : 0
      cluster.delayMaxMs = seed % 2 === 0 ? 1500 : 40
      for (let round = 0; round < 8; round++) {
        const site = cluster.sites[cluster.choose(3)] as Site
        for (let i = 0; i < 20; i++) {
          cluster.leader?.replica?.submit(acquire(cluster.session, 1000 * round + i + 1, `r${round}-${i}`), () => {})
        }
        cluster.advance(cluster.choose(1000))
        cluster.crash(site)
        cluster.advance(cluster.choose(3000))
        cluster.start(site)
        cluster.advance(cluster.choose(6000))
      }
      cluster.lossPercent = 0
      cluster.delayMaxMs = 5
      cluster.elect()
      cluster.settle()
      expect({ seed, failures: failuresOf(cluster) }).toEqual({ seed, failures: [] })
    }
  })
})

describe('members of an older version', () => {
  it.each([[[0]], [[0, 1]], [[1, 2]]])('%j serve together with newer ones, restarts included', (older) => {
    const cluster = new Service(3)
    for (const i of older) cluster.older.add(cluster.sites[i] as Site)
    let leader = cluster.begin()
    cluster.take(leader, 3)
    for (const site of [...cluster.sites, ...cluster.sites]) {
      cluster.crash(site)
      cluster.advance(500)
      cluster.start(site)
      leader = cluster.elect()
      expect(cluster.take(leader)).toBeGreaterThan(0)
      cluster.settle()
      expect(cluster.now).toBeLessThan(300_000)
    }
    expect(failuresOf(cluster)).toEqual([])
  })

  it('are asked for statements after their upgrade', () => {
    const cluster = new Service(3)
    for (const site of cluster.sites) cluster.older.add(site)
    const leader = cluster.begin()
    cluster.take(leader, 3)
    for (const site of cluster.others(leader)) cluster.older.delete(site)
    cluster.older.delete(leader)
    for (const site of cluster.sites) {
      cluster.crash(site)
      cluster.start(site)
      cluster.elect()
      cluster.settle()
    }
    const [victim] = cluster.others(cluster.leader as Site)
    const copy = victim.disk.clone()
    cluster.take(cluster.leader as Site, 3)
    cluster.advance(100)
    cluster.setBack(victim, copy)
    cluster.start(victim)
    cluster.until(() => failureOf(victim) !== undefined, LONG_ENOUGH_MS)
    expect(failureOf(victim)).toMatch(SET_BACK)
  })
})

describe('two histories', () => {
  /** The leader and the victim have committed what the third lacks; the victim and the third continue without it. */
  function forked(options: ConstructorParameters<typeof Cluster>[2], more: number): { cluster: Service; old: Site } {
    const cluster = new Service(3, 1, options)
    const old = cluster.begin()
    const [victim, third] = cluster.others(old)
    cluster.take(old, 3)
    cluster.settle()
    const copy = victim.disk.clone()
    cluster.crash(third)
    cluster.take(old, 4)
    // What the victim has acknowledged is on the disk of the one that goes down.
    cluster.advance(11_000)
    cluster.crash(old)
    cluster.setBack(victim, copy)
    cluster.start(victim)
    cluster.start(third)
    // No live member can know.
    const next = cluster.elect()
    cluster.take(next, more)
    cluster.settle([victim, third])
    return { cluster, old }
  }

  it.each([
    ['longer', 10],
    ['shorter', 1],
  ])(
    'of which that of the majority is the %s: the other member stops, and says what stands against what',
    (_, more) => {
      const { cluster, old } = forked({}, more)
      cluster.start(old)
      cluster.until(() => failureOf(old) !== undefined, LONG_ENOUGH_MS)
      expect(failureOf(old)).toMatch(
        /a majority has gone on without entries that are committed here: n\d \(node \d+\) has entry \d+ of term [23] committed, and this member has one of term 1/,
      )
      cluster.advance(1000)
      expect(old.disk.list()).toContain(CONTRADICTED)
      const leader = cluster.elect()
      expect(cluster.take(leader, 3)).toBeGreaterThan(0)
      expect(failuresOf(cluster)).toHaveLength(1)
    },
  )

  /** The victim leads in term 2, forgets that, and term 2 is given once more: a matter of luck, so several are tried. */
  function sameTerm(seed = 1): { cluster: Service; old: Site; victim: Site; third: Site; next: Site } {
    const cluster = new Service(3, seed)
    const old = cluster.begin()
    const [victim, third] = cluster.others(old)
    cluster.take(old, 3)
    cluster.settle()
    const copy = victim.disk.clone()
    cluster.crash(third)
    old.replica?.transferLeadership(victim.info.name)
    cluster.until(() => victim.replica?.status.role === 'leader')
    cluster.elect()
    cluster.take(victim, 4)
    cluster.advance(1100)
    cluster.crash(old)
    cluster.setBack(victim, copy)
    cluster.start(victim)
    cluster.start(third)
    const next = cluster.elect()
    if (next.replica?.status.term === 2) return { cluster, old, victim, third, next }
    expect(seed).toBeLessThan(30)
    return sameTerm(seed + 1)
  }

  it.each([1, 10])('of the same term stop the member that differs from a majority, when %i entries follow', (more) => {
    const { cluster, old, victim, third, next } = sameTerm()
    cluster.take(next, more)
    cluster.settle([victim, third])
    // With only one of them present, neither history is known to be right, and neither member accepts the other.
    cluster.crash(third)
    cluster.start(old)
    cluster.advance(5_000)
    cluster.frames = 0
    cluster.advance(10_000)
    expect(cluster.leader).toBeUndefined()
    // They send at most one request per tick.
    expect(cluster.frames).toBeLessThan(2000)
    cluster.start(third)
    cluster.until(() => failureOf(old) !== undefined, LONG_ENOUGH_MS)
    expect(failureOf(old)).toMatch(/a majority has gone on without entries that are committed here/)
    const leader = cluster.elect()
    expect(cluster.take(leader, 3)).toBeGreaterThan(0)
    expect(failuresOf(cluster)).toHaveLength(1)
  })

  it('are detected when the member with the earlier one was only partitioned, and led', () => {
    const cluster = new Service(3)
    const old = cluster.begin()
    const [victim, third] = cluster.others(old)
    cluster.take(old, 3)
    cluster.settle()
    const copy = victim.disk.clone()
    cluster.crash(third)
    cluster.take(old, 4)
    cluster.advance(200)
    cluster.isolate(old)
    cluster.setBack(victim, copy)
    cluster.start(victim)
    cluster.start(third)
    cluster.until(() => [victim, third].some(({ replica }) => replica?.status.role === 'leader'))
    cluster.advance(2000)
    expect(failuresOf(cluster)).toEqual([])
    cluster.heal()
    cluster.until(() => failureOf(old) !== undefined, LONG_ENOUGH_MS)
    expect(failureOf(old)).toMatch(/conflicts with a committed one|a majority has gone on without/)
    expect([failureOf(victim), failureOf(third)]).toEqual([undefined, undefined])
    const leader = cluster.elect()
    expect(cluster.take(leader, 3)).toBeGreaterThan(0)
  })
})
