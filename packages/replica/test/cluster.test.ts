import type { Millis, Result, SessionId } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import type { ChangeResult, MembershipChange } from '../src/driver/membership-changes.js'
import { Cluster, type Site } from './support/cluster.js'
import { acquire } from './support/world.js'

function openSession(cluster: Cluster, site: Site, ttlMs = 600_000): SessionId {
  const nonce = '5a'.repeat(16)
  const result = cluster.submit(site, {
    kind: 'openSession',
    nonce,
    secret: nonce,
    ttlMs: ttlMs as Millis,
    client: '',
    local: false,
  })
  if (result.kind !== 'opened') throw new Error(JSON.stringify(result))
  return result.session
}

const hashes = (cluster: Cluster) => new Set(cluster.sites.map(({ replica }) => replica?.stale().state.hash()))

describe('three members', () => {
  it('elect a leader, and reach the same state', () => {
    const cluster = new Cluster(3)
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    for (let i = 1; i <= 20; i++)
      expect(cluster.submit(leader, acquire(session, i, `l${i}`))).toMatchObject({ kind: 'granted' })
    cluster.until(
      () =>
        new Set(cluster.sites.map(({ replica }) => replica?.status.appliedIndex)).size === 1 &&
        hashes(cluster).size === 1,
    )
    expect(cluster.sites.map(({ replica }) => replica?.status.leader)).toEqual(Array(3).fill(leader.info.name))
    expect(cluster.sites.map(({ replica }) => replica?.status.leaderUrl)).toEqual(Array(3).fill(leader.info.url))
  })

  it('refuse commands at a follower, and serve acknowledged state there', () => {
    const cluster = new Cluster(3)
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    const follower = cluster.sites.find((site) => site !== leader) as Site
    expect(cluster.submit(follower, acquire(session, 1, 'a'))).toMatchObject({ kind: 'refused', code: 'no-quorum' })
    expect(cluster.submit(leader, acquire(session, 1, 'a'))).toMatchObject({ kind: 'granted' })
    expect(cluster.read(follower, ({ state }) => state.machine.holds.size)).toBe(1)
  })

  it('keep holds, token order and remaining TTL when the leader is lost', () => {
    const cluster = new Cluster(3)
    const first = cluster.elect()
    const session = openSession(cluster, first, 20_000)
    const before = cluster.submit(first, acquire(session, 1, 'a')) as Extract<Result, { kind: 'granted' }>
    cluster.crash(first)
    const second = cluster.elect()
    expect(second).not.toBe(first)
    expect(cluster.submit(second, acquire(session, 2, 'a'))).toMatchObject({ code: 'busy' })
    const after = cluster.submit(second, acquire(session, 3, 'b')) as Extract<Result, { kind: 'granted' }>
    expect(after.grant.hold).toBeGreaterThan(before.grant.hold)
    cluster.advance(15_000)
    expect(second.replica?.stale().state.machine.sessions.size).toBe(1)
    cluster.advance(8_000)
    expect(second.replica?.stale().state.machine.sessions.size).toBe(0)
    cluster.start(first)
    cluster.until(() => hashes(cluster).size === 1)
  })

  it('answer undecided proposals with unknown-outcome, and stop time without a quorum', () => {
    const cluster = new Cluster(3)
    const old = cluster.elect()
    const session = openSession(cluster, old, 20_000)
    cluster.isolate(old)
    const results: Result[] = []
    old.replica?.submit(acquire(session, 1, 'a'), (result) => results.push(result))
    const time = old.replica?.stale().state.now as number
    cluster.until(() => results.length > 0)
    expect(results).toMatchObject([{ code: 'unknown-outcome' }])
    cluster.advance(60_000)
    expect(old.replica?.stale().state.now).toBe(time)
    cluster.heal()
    cluster.elect()
    cluster.until(() => hashes(cluster).size === 1)
  })

  it('acknowledge nothing before it is on the disks of a quorum', () => {
    const cluster = new Cluster(3, 1, { blockingWrites: false })
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    const others = cluster.sites.filter((site) => site !== leader)
    for (const stalled of [others, [leader, others[0] as Site]]) {
      const results: Result[] = []
      for (const site of stalled) cluster.stalled.add(site)
      const request = 1 + cluster.read(leader, ({ state }) => state.machine.holds.size)
      leader.replica?.submit(acquire(session, request, `l${request}`), (result) => results.push(result))
      cluster.advance(500)
      expect(results).toEqual([])
      cluster.stalled.clear()
      cluster.until(() => results.length > 0)
      expect(results).toMatchObject([{ kind: 'granted' }])
    }
  })

  it("transfer leadership when the leader's disk hangs, and accept it back as a follower", () => {
    const cluster = new Cluster(3, 1, { blockingWrites: false })
    const old = cluster.elect()
    const session = openSession(cluster, old)
    const results: Result[] = []
    cluster.stalled.add(old)
    old.replica?.submit(acquire(session, 1, 'a'), (result) => results.push(result))
    // It counts as hanging after four election timeouts, and another member leads soon after that.
    cluster.advance(3000)
    expect([old.replica?.status.role, results]).toEqual(['leader', []])
    cluster.until(() => cluster.leader !== undefined && cluster.leader !== old, 1000)
    const leader = cluster.elect()
    expect(results).toMatchObject([{ kind: 'refused', code: 'unknown-outcome' }])
    expect(cluster.submit(leader, acquire(session, 1, 'a'))).toMatchObject({ kind: 'granted' })
    for (let i = 2; i <= 30; i++) {
      expect(cluster.submit(leader, acquire(session, i, `l${i}`))).toMatchObject({ kind: 'granted' })
    }
    cluster.advance(60_000)
    expect(cluster.leader).toBe(leader)
    cluster.stalled.clear()
    cluster.until(() => hashes(cluster).size === 1)
    expect(old.replica?.status).toMatchObject({ role: 'follower', leader: leader.info.name, failure: undefined })
  })

  it('do not transfer leadership for a flush of three seconds, nor to an absent member', () => {
    const cluster = new Cluster(3, 1, { blockingWrites: false })
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    const others = cluster.sites.filter((site) => site !== leader)
    for (let i = 1; i <= 3; i++) {
      const results: Result[] = []
      cluster.stalled.add(leader)
      leader.replica?.submit(acquire(session, i, `l${i}`), (result) => results.push(result))
      cluster.advance(3000)
      cluster.stalled.clear()
      cluster.until(() => results.length > 0)
      expect(results).toMatchObject([{ kind: 'granted' }])
    }
    expect(leader.replica?.status).toMatchObject({ role: 'leader', term: 1 })
    // Both others are gone: then no member leads, and the remaining one recovers when they return.
    for (const site of others) cluster.crash(site)
    cluster.stalled.add(leader)
    cluster.advance(20_000)
    cluster.stalled.clear()
    for (const site of others) cluster.start(site)
    cluster.elect()
    expect(leader.replica?.status.failure).toBeUndefined()
  })

  it('grant no vote before it is on the disk', () => {
    const cluster = new Cluster(3, 1, { blockingWrites: false })
    const leader = cluster.elect()
    const others = cluster.sites.filter((site) => site !== leader)
    cluster.crash(leader)
    for (const site of others) cluster.stalled.add(site)
    cluster.advance(10_000)
    expect(others.map(({ replica }) => replica?.status.role)).not.toContain('leader')
    cluster.stalled.clear()
    expect(others).toContain(cluster.elect())
  })

  it('bring a long absent member up to date with a snapshot', () => {
    const cluster = new Cluster(3, 1, { snapshotBytes: 8192 })
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    const away = cluster.sites.find((site) => site !== leader) as Site
    cluster.crash(away)
    for (let i = 1; i <= 400; i++) {
      const data = new Uint8Array(100)
      expect(cluster.submit(leader, acquire(session, i, `l${i}`, { data }))).toMatchObject({ kind: 'granted' })
    }
    cluster.start(away)
    cluster.until(() => away.replica?.stale().state.machine.holds.size === 400)
    cluster.until(() => hashes(cluster).size === 1)
    expect(
      away.disk.list().some((name) => name.startsWith('snapshot-') && !name.startsWith('snapshot-0000000000000000')),
    ).toBe(true)
    cluster.crash(away)
    cluster.start(away)
    cluster.until(() => hashes(cluster).size === 1)
    expect(cluster.sites.map(({ replica }) => replica?.status.failure)).toEqual([undefined, undefined, undefined])
  })

  it('stop the member whose state differs', () => {
    const cluster = new Cluster(3, 1, { compareEvery: 16 })
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    const odd = cluster.sites.find((site) => site !== leader) as Site
    cluster.until(() => hashes(cluster).size === 1)
    const state = odd.replica?.stale().state
    if (state) state.machine.counter += 5
    for (let i = 1; i <= 20; i++) cluster.submit(leader, acquire(session, i, `l${i}`))
    cluster.until(() => odd.replica?.status.role === 'stopped')
    expect(odd.replica?.status.failure).toMatch(/the state at entry 16 has hash/)
    expect(leader.replica?.status.failure).toBeUndefined()
    expect(cluster.submit(leader, acquire(session, 21, 'l21'))).toMatchObject({ kind: 'granted' })
  })
})

describe('membership', () => {
  const change = (cluster: Cluster, what: MembershipChange): ChangeResult => {
    let result: ChangeResult | undefined
    cluster.elect().replica?.changeMembership(what, (answer) => {
      result = answer
    })
    cluster.until(() => result !== undefined)
    return result as unknown as ChangeResult
  }

  it('lets the first member return from a single-member snapshot while another one leads', () => {
    const cluster = new Cluster(1)
    const [first] = cluster.sites as [Site]
    cluster.elect()
    for (const i of [1, 2]) {
      const site = cluster.site(i)
      cluster.sites.push(site)
      cluster.start(site)
      expect(change(cluster, { kind: 'add', member: site.info })).toMatchObject({ kind: 'changed' })
      cluster.advance(2000)
      expect(change(cluster, { kind: 'promote', name: site.info.name })).toMatchObject({ kind: 'changed' })
    }
    const session = openSession(cluster, first)
    expect(cluster.submit(first, acquire(session, 1, 'a'))).toMatchObject({ kind: 'granted' })
    cluster.crash(first)
    const second = cluster.elect()
    // Opens as a follower: it is not the one that must lead.
    cluster.start(first)
    expect(cluster.submit(second, acquire(session, 2, 'b'))).toMatchObject({ kind: 'granted' })
    cluster.until(() => hashes(cluster).size === 1)
    expect(first.replica?.status.role).toBe('follower')
  })

  it('grows by a learner that catches up and is promoted, and shrinks by the leader itself', () => {
    const cluster = new Cluster(3, 1, { snapshotBytes: 8192 })
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    for (let i = 1; i <= 200; i++) cluster.submit(leader, acquire(session, i, `l${i}`, { data: new Uint8Array(100) }))
    const site = cluster.site(3)
    cluster.sites.push(site)
    cluster.start(site)
    const { name } = site.info
    expect(change(cluster, { kind: 'promote', name })).toMatchObject({ code: 'invalid' })
    expect(change(cluster, { kind: 'add', member: site.info })).toMatchObject({ kind: 'changed' })
    cluster.until(() => site.replica?.stale().state.machine.holds.size === 200)
    expect(site.replica?.status.role).toBe('learner')
    cluster.advance(1000)
    expect(change(cluster, { kind: 'promote', name })).toMatchObject({ kind: 'changed' })
    expect(leader.replica?.members.map((member) => [member.name, member.role])).toEqual(
      ['n1', 'n2', 'n3', 'n4'].map((one) => [one, 'voter']),
    )
    // A voter that is added again would be a learner, without a vote.
    expect(change(cluster, { kind: 'add', member: site.info })).toMatchObject({ code: 'invalid' })
    expect(site.replica?.status.role).toBe('follower')
    expect(change(cluster, { kind: 'remove', name: leader.info.name })).toMatchObject({ kind: 'changed' })
    cluster.until(() => cluster.leader !== undefined && cluster.leader !== leader)
    const next = cluster.elect()
    expect(cluster.submit(next, acquire(session, 201, 'l201'))).toMatchObject({ kind: 'granted' })
    expect(next.replica?.members.map((member) => member.name)).not.toContain(leader.info.name)
    cluster.advance(20_000)
    expect(cluster.elect()).toBe(next)
    expect(change(cluster, { kind: 'remove', name: 'n9' })).toMatchObject({ code: 'invalid' })
  })

  it('transfers leadership without losing pending commands', () => {
    const cluster = new Cluster(3)
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    const other = cluster.sites.find((site) => site !== leader) as Site
    leader.replica?.transferLeadership(other.info.name)
    const results: Result[] = []
    leader.replica?.submit(acquire(session, 1, 'a'), (result) => results.push(result))
    cluster.until(() => other.replica?.status.role === 'leader', 2000)
    cluster.until(() => results.length === 1)
    expect(results).toMatchObject([{ kind: 'refused' }])
    cluster.elect()
    expect(cluster.submit(other, acquire(session, 1, 'a'))).toMatchObject({ kind: 'granted' })
    expect(() => other.replica?.transferLeadership('n9')).toThrow(/not a member/)
  })
})

describe('any sequence of crashes, partitions and losses', () => {
  it.each([1, 2, 3, 4, 5, 6])('loses nothing that was acknowledged (seed %i)', (seed) => {
    const cluster = new Cluster(3, seed, {
      snapshotBytes: 8192,
      snapshotSliceBytes: 100,
      blockingWrites: seed % 2 === 0,
    })
    const session = openSession(cluster, cluster.elect())
    const held = new Map<string, number>()
    const { choose } = cluster
    let request = 1
    for (let round = 0; round < 12; round++) {
      cluster.lossPercent = choose(3) * 10
      const site = cluster.sites[choose(3)] as Site
      const fault = choose(4)
      if (fault === 0) cluster.crash(site)
      else if (fault === 1) cluster.isolate(site)
      else if (fault === 2) cluster.cut.add(`${site.info.node}>${(cluster.sites[choose(3)] as Site).info.node}`)
      for (let n = 0; n < 30; n++) {
        const own = request++
        const name = `l${own}`
        for (const { replica } of cluster.sites) {
          if (replica?.status.role !== 'leader') continue
          const command = acquire(session, own, name, {
            data: new Uint8Array(choose(200)),
            ack: { lowest: Math.max(1, own - 300), also: [] },
          })
          replica.submit(command, (result) => result.kind === 'granted' && held.set(name, result.grant.hold))
        }
        cluster.advance(choose(120))
      }
      cluster.heal()
      for (const one of cluster.sites) if (!one.replica) cluster.start(one)
    }
    cluster.lossPercent = 0
    const leader = cluster.elect()
    const present = cluster.read(
      leader,
      ({ state }) => new Map([...state.machine.holds.values()].map((hold) => [hold.held[0]?.name, hold.id])),
    )
    expect(held.size).toBeGreaterThan(50)
    for (const [name, hold] of held) expect(present.get(name), name).toBe(hold)
    cluster.until(() => hashes(cluster).size === 1)
    expect(cluster.sites.map(({ replica }) => replica?.status.failure)).toEqual([undefined, undefined, undefined])
  })
})

describe('a member that joins before the first snapshot', () => {
  it('gets a snapshot', () => {
    const cluster = new Cluster(3, 7)
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    for (let i = 1; i <= 5; i++) cluster.submit(leader, acquire(session, i, `l${i}`))
    const site = cluster.site(3)
    cluster.sites.push(site)
    cluster.start(site)
    let result: ChangeResult | undefined
    leader.replica?.changeMembership({ kind: 'add', member: site.info }, (answer) => {
      result = answer
    })
    cluster.until(() => result !== undefined)
    cluster.until(() => site.replica?.stale().state.machine.holds.size === 5)
    expect(site.replica?.status.role).toBe('learner')
  })
})

describe('a new member of a service with much to tell', () => {
  it('gets the state in slices, while commands are served and no member loses the leader', () => {
    const cluster = new Cluster(3, 11, { snapshotSliceBytes: 100, blockingWrites: false })
    const leader = cluster.elect()
    const session = openSession(cluster, leader)
    const holds = 300
    let next = 1
    const hold = (): void => {
      const command = acquire(session, next, `l${next++}`, { ack: { lowest: Math.max(1, next - 100), also: [] } })
      expect(cluster.submit(leader, command)).toMatchObject({ kind: 'granted' })
    }
    while (next <= holds) hold()
    const term = leader.replica?.status.term
    const site = cluster.site(3)
    cluster.sites.push(site)
    cluster.start(site)
    leader.replica?.changeMembership({ kind: 'add', member: site.info }, () => {})
    const stages = new Set<string>()
    const size = (): number => site.replica?.stale().state.machine.holds.size ?? 0
    while (size() < holds) {
      stages.add(leader.replica?.stale().state.machine.hash.observer ? 'written' : 'sent and read')
      hold()
      expect(next).toBeLessThan(10 * holds)
    }
    expect([...stages].sort()).toEqual(['sent and read', 'written'])
    expect(next - holds, 'commands that were answered meanwhile').toBeGreaterThan(50)
    cluster.until(() => hashes(cluster).size === 1)
    expect(size()).toBe(next - 1)
    expect(cluster.leader?.replica?.status).toMatchObject({ member: leader.info.name, term })
  })
})
