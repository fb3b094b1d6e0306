import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { all } from '../../bench/workloads/all.js'
import { terminalBars } from '../../bench/draw/bars.js'
import { withPart } from '../../bench/draw/docs.js'
import { svgOf } from '../../bench/draw/svg.js'
import { growth } from '../../bench/workloads/growth.js'
import { micro } from '../../bench/workloads/micro.js'
import { startAll } from '../../bench/systems/peer.js'
import { startLeasehold } from '../../bench/systems/leasehold.js'
import { snapshotUses } from '../../bench/workloads/snapshots.js'
import { findRedis } from '../services/redis.js'

const SHORT = { rounds: 1, seconds: 0.05 }

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('the measurements', () => {
  it('compare what is installed, and are drawn', async () => {
    const hasRedis = findRedis() !== undefined
    const results = await all({ ...SHORT, docs: false, only: ['leasehold, one member', 'Redis always'] })
    expect(results.workloads.map(({ title }) => title)).toEqual([
      '1 client',
      '64 names',
      '512 names',
      'hand-offs, 64 on 1 name',
    ])
    expect(results.skipped.map(({ name }) => name)).toEqual(hasRedis ? [] : ['Redis always'])
    for (const { systems } of results.workloads) {
      expect(systems).toHaveLength(hasRedis ? 2 : 1)
      for (const { pairsPerSecond } of systems) expect(pairsPerSecond.median).toBeGreaterThan(0)
    }
    const [bars, svg] = [terminalBars(results), svgOf(results)]
    for (const { name } of results.systems) for (const drawn of [bars, svg]) expect(drawn).toContain(name)
  })

  it('leave no server behind when a later one cannot be started', async () => {
    let pid = 0
    const first = async () => {
      const service = await startLeasehold()
      pid = service.pid
      expect(isAlive(pid)).toBe(true)
      return service
    }
    await expect(startAll([first, () => Promise.reject(new Error('not installed'))])).rejects.toThrow('not installed')
    expect(isAlive(pid)).toBe(false)
  })

  it('tell what grows', async () => {
    const sizes = { few: 5, many: 60, sessions: 20, snapshotHolds: 5_000, renewing: 50, renewTtlMs: 3_000 }
    const { rate, renewals, state } = await growth(SHORT, sizes)
    expect(state.bytesPerHeldLock).toBeGreaterThan(0)
    expect(rate.ratios.median).toBeGreaterThan(0)
    expect(renewals).toMatchObject({ sessions: 50, failed: 0 })
    expect(renewals.renewalsPerSecond).toBeGreaterThan(0)
  })

  it('tell how long a large state keeps a member busy at a stretch', async () => {
    const { load, send, install, backup } = await snapshotUses(500)
    for (const { ms } of [load, send, install, backup]) expect(ms).toBeGreaterThan(0)
  })

  it('know every hot path of the baseline', () => {
    const baseline = JSON.parse(readFileSync(new URL('../../bench/micro-baseline.json', import.meta.url), 'utf8'))
    expect(Object.keys(micro({ rounds: 1, seconds: 0.01 }))).toEqual(Object.keys(baseline))
  })

  it('have a place in the page, which stays as it is otherwise', () => {
    const page = readFileSync(new URL('../../docs/performance.md', import.meta.url), 'utf8')
    const once = withPart(page, 'figures')
    expect(once).toContain('\nfigures\n')
    expect(withPart(once, 'figures')).toBe(once)
    expect(once.split('<!-- ').length).toBe(page.split('<!-- ').length)
  })
})
