import { describe, expect, it } from 'vitest'
import { Cluster, bitrot, SimulatedClient } from '../../src/cluster/index.js'
import { World } from '../../src/world/index.js'

const SECOND = 1_000_000

/** A cluster that has taken several snapshots, and deleted log files; `N2` does not run any more. */
async function staged() {
  const world = new World({ seed: 4 })
  const cluster = new Cluster(world, { settings: { snapshotBytes: 100_000 } })
  cluster.start()
  const { beliefs } = cluster.checks
  const client = new SimulatedClient({ name: 'C1', machine: world.machine('C1'), urls: cluster.urls, beliefs })
  client.process.soon(() => {
    void (async () => {
      for (let n = 0; n < 12; n++) await client.locks.register('r').put('x'.repeat(50_000))
    })()
  })
  await world.run(10 * SECOND)
  const member = cluster.member('N2')
  member.kill()
  const begin = async () => {
    member.start()
    await world.run(world.nowUs + SECOND)
    return {
      refused: member.refused?.message,
      found: cluster.checks.violations.found.map(({ invariant }) => invariant),
    }
  }
  return { member, begin }
}

const snapshotsOf = ({ disk }: { disk: { folder: { names: Map<string, unknown> } } }) =>
  [...disk.folder.names.keys()].filter((name) => name.startsWith('snapshot-')).sort()

describe('rot', () => {
  it('of the newest snapshot leaves a member that must start all the same', async () => {
    const { member, begin } = await staged()
    expect(snapshotsOf(member)).toHaveLength(2)
    bitrot(member, 'newestSnapshot')
    expect(member.disk.altered).toBe(false)
    expect(await begin()).toEqual({ refused: undefined, found: [] })
  })

  it('of the one that would stand in for it allows a refusal', async () => {
    const { member, begin } = await staged()
    bitrot(member, 'newestSnapshot')
    member.disk.rot(new RegExp(snapshotsOf(member)[0] as string))
    expect(member.disk.altered).toBe(true)
    expect(await begin()).toEqual({ refused: expect.stringContaining('is damaged'), found: [] })
  })

  it('that the disk does not report: a refusal is a violation', async () => {
    const { member, begin } = await staged()
    for (const name of snapshotsOf(member)) member.disk.rot(new RegExp(name))
    member.disk.altered = false
    expect((await begin()).found).toEqual(['I10'])
  })
})
