import { type Configure, floorAt, LEVEL_MAX, type Result, type SessionId } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { TermConfiguration } from '../../src/leadership/term-configuration.js'
import { noopLogger } from '../../src/noop.js'
import { Cluster, type Site } from '../support/cluster.js'
import { SimDisk } from '../support/sim-disk.js'
import { acquire, World } from '../support/world.js'

function tokenOf(result: Result): number {
  if (result.kind !== 'granted') throw new Error(JSON.stringify(result))
  return result.grant.hold
}

function grant(world: World, session: SessionId, request: number, name = `lock-${request}`): number {
  return tokenOf(world.submit(acquire(session, request, name)))
}

const floorNow = (world: World): number => floorAt(world.clock.wallMs()) as number

describe('a service of one', () => {
  it('starts its tokens above the clock, so that a new service in an emptied folder starts above the lost one', () => {
    const lost = new World()
    lost.open()
    expect(lost.replica.bootstrappedAbove).toBeDefined()
    const session = lost.openSession()
    const last = Array.from({ length: 500 }, (_, i) => grant(lost, session, i + 1)).at(-1) as number
    const again = new World(2, new SimDisk())
    again.clock.now = lost.clock.now + 1000
    again.open()
    expect(grant(again, again.openSession(), 1)).toBeGreaterThan(last)
  })

  it('raises its tokens to the clock at each start', () => {
    const world = new World()
    world.open()
    world.openSession()
    world.advance(5000)
    world.crash()
    expect(world.replica.bootstrappedAbove).toBeUndefined()
    world.advance(100)
    const floor = floorNow(world) - 128 * 1000
    expect(grant(world, world.openSession(10_000, 'cd'.repeat(16)), 1)).toBeGreaterThan(floor)
  })

  it('repeats no token after its disk was set back to an earlier copy', () => {
    const world = new World()
    world.open()
    const session = world.openSession(600_000)
    grant(world, session, 1)
    world.stop()
    const copy = world.disk.clone()
    world.open()
    const lost = grant(world, session, 2, 'x')
    world.stop()
    world.advance(1000)
    const back = new World(3, copy)
    back.clock.now = world.clock.now
    back.open()
    expect(grant(back, session, 2, 'x')).toBeGreaterThan(lost)
  })

  it('starts at 1 without floors', () => {
    const world = new World()
    world.open({ clockFloors: false })
    expect(world.openSession()).toBe(1)
    world.crash(undefined, { clockFloors: false })
    expect(grant(world, 1 as SessionId, 1)).toBe(2)
  })

  it('is not bootstrapped while the clock is implausible, unless an epoch is given', () => {
    for (const wallMs of [0, Date.UTC(2023, 11, 31), Date.UTC(2060, 0, 1)]) {
      const world = new World()
      world.clock.wallMs = () => wallMs
      expect(() => world.open()).toThrow(/clock of this machine shows/)
      expect(world.disk.list().filter((name) => name === 'identity')).toEqual([])
      world.open({ bootstrap: { epoch: 4 } })
      expect(grant(world, world.openSession(), 1)).toBe(2)
    }
  })

  it('warns once and works when the clock becomes implausible later', () => {
    const world = new World()
    world.open()
    const warnings: string[] = []
    const platform = { ...world.platform, log: { ...noopLogger, warn: (text: string) => warnings.push(text) } }
    world.clock.wallMs = () => 0
    world.crash(undefined, { platform })
    world.advance(3000)
    expect(warnings.filter((text) => text.includes('clock is implausible'))).toHaveLength(1)
    expect(grant(world, world.openSession(), 1)).toBeGreaterThan(0)
  })

  it('of feature level 1 reaches the highest level and the floor when it starts', () => {
    const info = { node: 5, name: 'n1', peer: '', url: '' }
    const world = new World()
    world.open({ bootstrap: { cluster: { id: 'ab'.repeat(16), node: 5, founders: [info] } } })
    expect(world.read(({ state }) => state.level)).toBe(LEVEL_MAX)
    expect(world.openSession()).toBeGreaterThan(floorNow(world) - 128 * 1000)
  })
})

describe('a cluster', () => {
  const levels = (cluster: Cluster): unknown[] => cluster.sites.map(({ replica }) => replica?.stale().state.level)

  it('has equal initial states from one bootstrap record', () => {
    const cluster = new Cluster(3, 1, { clockFloors: false }, { level: 2, floor: 4711 })
    const leader = cluster.elect()
    expect(cluster.read(leader, ({ state }) => state.counter)).toBe(4711)
    cluster.advance(500)
    expect(new Set(cluster.sites.map(({ replica }) => replica?.stale().state.hash())).size).toBe(1)
  })

  it('raises the counter in each term', () => {
    const cluster = new Cluster(3)
    const counter = (site: Site): number => cluster.read(site, ({ state }) => state.counter)
    const first = cluster.elect()
    const before = counter(first)
    cluster.advance(3000)
    cluster.crash(first)
    const second = cluster.elect()
    expect(counter(second)).toBeGreaterThan(before + 128 * 2500)
  })

  it('stays at feature level 1 until all members have announced the next one', () => {
    const cluster = new Cluster(3, 1, {}, {})
    const away = cluster.sites[2] as Site
    cluster.isolate(away)
    cluster.elect()
    cluster.advance(10_000)
    const connected = cluster.sites.filter((site) => site !== away)
    expect(connected.map(({ replica }) => replica?.stale().state.level)).toEqual([1, 1])
    cluster.heal()
    cluster.advance(10_000)
    expect(levels(cluster)).toEqual([2, 2, 2])
    const counters = cluster.sites.map(({ replica }) => replica?.stale().state.counter)
    expect(new Set(counters).size).toBe(1)
    expect(counters[0]).toBeGreaterThan(floorAt(Date.UTC(2026, 11, 1)) as number)
  })
})

describe('Floors', () => {
  const wallMs = () => Date.UTC(2027, 0, 1)
  const clock = { wallMs, monotonicMs: () => 0, after: () => () => {} }
  const member = (node: number) => ({ node, name: `n${node}`, peer: `h${node}:1`, url: '' })
  const members = [1, 2, 3].map(member)
  const floors = (enabled = true) => new TermConfiguration({ clock, log: noopLogger, self: 1, enabled })
  const floor = floorAt(wallMs()) as never
  const set = (more: Partial<Configure>) => ({ kind: 'configure', ...more })

  it('proposes nothing at level 1 while a member has not announced more', () => {
    const one = floors()
    expect(one.opening(1, members)).toBeUndefined()
    expect(one.following(1)).toBeUndefined()
    one.announced(2, LEVEL_MAX)
    expect(one.raised(1, members)).toBeUndefined()
    one.announced(3, 1)
    expect(one.raised(1, members)).toBeUndefined()
  })

  it('proposes level and floor together, once', () => {
    const one = floors()
    one.opening(1, members)
    one.announced(2, LEVEL_MAX)
    one.announced(3, LEVEL_MAX + 5)
    expect(one.raised(1, members)).toEqual(set({ level: LEVEL_MAX, floor }))
    expect(one.raised(1, members)).toBeUndefined()
    expect(one.opening(1, members)).toEqual(set({ level: LEVEL_MAX, floor }))
  })

  it('proposes the floor after the first entry when an earlier leader has raised the level in between', () => {
    const one = floors()
    one.opening(1, members)
    expect(one.following(2)).toEqual(set({ floor }))
    expect(one.following(2)).toBeUndefined()
  })

  it('announces to another leader every 20 ticks, and only while a higher level exists', () => {
    const one = floors()
    const ticks = (leader: number, level: number) =>
      Array.from({ length: 100 }, () => one.announces(leader, level)).filter(Boolean).length
    expect(ticks(2, 1)).toBe(5)
    expect([ticks(0, 1), ticks(1, 1), ticks(2, LEVEL_MAX)]).toEqual([0, 0, 0])
  })

  it('raises only the level without floors', () => {
    const one = floors(false)
    expect(one.opening(2, members)).toBeUndefined()
    expect(one.opening(1, [member(1)])).toEqual(set({ level: LEVEL_MAX }))
  })
})
