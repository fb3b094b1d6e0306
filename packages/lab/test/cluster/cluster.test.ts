import { describe, expect, it } from 'vitest'
import { SimulatedClient } from '../../src/cluster/simulated-client.js'
import { Cluster } from '../../src/cluster/cluster.js'
import { World } from '../../src/world/index.js'

const SECOND = 1_000_000

interface Stage {
  readonly world: World
  readonly cluster: Cluster
  readonly client: SimulatedClient
  readonly done: number[]
}

/** Three members and a client that takes and gives back a lock, over and over. */
function staged(seed: number): Stage {
  const world = new World({ seed })
  const cluster = new Cluster(world)
  cluster.start()
  const { beliefs } = cluster.checks
  const client = new SimulatedClient({ name: 'C1', machine: world.machine('C1'), urls: cluster.urls, beliefs })
  const done: number[] = []
  const work = async () => {
    for (;;) {
      try {
        const hold = await client.locks.acquire('jobs')
        client.believes(hold)
        await client.process.sleep(20_000)
        client.forgets(hold)
        await hold.release()
        done.push(world.nowUs)
      } catch {
        await client.process.sleep(100_000)
      }
    }
  }
  client.process.soon(() => void work())
  return { world, cluster, client, done }
}

describe('a cluster in the world', () => {
  it('serves clients, and two runs of a seed are the same', async () => {
    const run = async () => {
      const { world, cluster, done } = staged(3)
      await world.run(10 * SECOND)
      expect(cluster.checks.violations.found).toEqual([])
      return { units: done.length, trace: world.trace.digest }
    }
    const first = await run()
    expect(first.units).toBeGreaterThan(50)
    expect(await run()).toEqual(first)
  })

  it('serves on after its leader has lost power, and takes the member in again', async () => {
    const { world, cluster, done } = staged(5)
    await world.run(5 * SECOND)
    const old = cluster.leader
    old?.powerOff()
    await world.run(12 * SECOND)
    expect(cluster.leader?.name).not.toBe(old?.name)
    expect(done.filter((at) => at > 9 * SECOND).length).toBeGreaterThan(10)
    old?.start()
    await world.run(16 * SECOND)
    expect(old?.applied).toBeGreaterThan(0)
    expect(cluster.checks.violations.found).toEqual([])
  })

  it('keeps what was acknowledged when all members lose power at once', async () => {
    const { world, cluster, done } = staged(7)
    await world.run(5 * SECOND)
    for (const member of cluster.list) member.powerOff()
    const before = cluster.checks.entries
    for (const member of cluster.list) member.start()
    await world.run(12 * SECOND)
    expect(cluster.list.map((member) => member.refused)).toEqual([undefined, undefined, undefined])
    expect(cluster.leader?.applied).toBeGreaterThanOrEqual(before)
    expect(done.filter((at) => at > 9 * SECOND).length).toBeGreaterThan(10)
    expect(cluster.checks.violations.found).toEqual([])
  })

  it('lets a member die at each of its effects, and loses nothing', async () => {
    for (let nth = 1; nth <= 40; nth++) {
      const { world, cluster, done } = staged(100 + nth)
      await world.run(3 * SECOND)
      const { leader } = cluster
      if (!leader) continue
      leader.dieAtEffect(nth, () => leader.powerOff())
      await world.run(4 * SECOND)
      expect(leader.running).toBe(false)
      leader.start()
      await world.run(7 * SECOND)
      expect(cluster.checks.violations.found).toEqual([])
      expect(done.filter((at) => at > 5 * SECOND).length).toBeGreaterThan(5)
    }
  })

  it('replaces a member whose disk is gone', async () => {
    const { world, cluster } = staged(9)
    await world.run(3 * SECOND)
    const gone = cluster.list.find((member) => !member.leads)
    if (!gone) throw new Error('everybody leads')
    gone.powerOff()
    const add = cluster.replaceDisk(gone.name)
    const change = async (what: Parameters<Cluster['change']>[0]) => {
      let problem: string | undefined = 'no answer'
      cluster.change(what, (text) => {
        problem = text
      })
      await world.run(world.nowUs + 2 * SECOND)
      expect(problem).toBeUndefined()
    }
    await change({ kind: 'remove', name: gone.name })
    await change(add)
    gone.start()
    await world.run(world.nowUs + 3 * SECOND)
    await change({ kind: 'promote', name: gone.name })
    expect(cluster.leader?.replica?.members.filter((one) => one.role === 'voter').length).toBe(3)
    expect(cluster.checks.violations.found).toEqual([])
  })

  it('hears nothing more from a member whose disk has failed (I11), and says so when it does', async () => {
    const { world, cluster } = staged(7)
    await world.run(5 * SECOND)
    const leader = cluster.leader
    if (leader === undefined) throw new Error('no leader')
    leader.disk.trouble.failSync = true
    await world.run(10 * SECOND)
    expect(leader.failures).toBe(1)
    expect(cluster.checks.violations.found).toEqual([])
    // One that goes on all the same.
    const next = cluster.leader
    if (next === undefined) throw new Error('no leader')
    next.broken = next.process
    await world.run(11 * SECOND)
    expect(cluster.checks.violations.found.map(({ invariant }) => invariant)).toContain('I11')
  })
})
