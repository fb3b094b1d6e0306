import { afterEach, describe, expect, it, vi } from 'vitest'
import { Inode } from '../../src/cluster/disk/inode.js'
import { fuzz, planOf, runPlan, scenarioOfPlan, shrink, violationText } from '../../src/fuzz/index.js'
import { WORKS } from '../../src/fuzz/plan.js'

afterEach(() => {
  vi.restoreAllMocks()
})

// Longer runs: LAB_SEEDS=1000..5000 here, or `leasehold lab explore --seeds 1..10000 --profile swarm`.
const [from = 1, to = 40] = (process.env.LAB_SEEDS ?? '1..40').split('..').map(Number)

describe('the explorer', () => {
  it(`finds nothing broken in seeds ${from} to ${to}`, { timeout: 900_000 }, async () => {
    const { found, undecided, faults, done } = await fuzz({ from, to, profile: 'swarm' })
    expect(
      found === undefined
        ? 'nothing'
        : `seed ${found.plan.seed}: ${violationText(found.outcome.violations[0] as never)}`,
    ).toBe('nothing')
    expect(undecided).toBe(0)
    // Every kind of fault and of work occurs: a kind that never does would be a hole.
    expect(Object.keys(faults).length).toBeGreaterThanOrEqual(25)
    expect(Object.keys(done).sort()).toEqual([...WORKS, 'keep', 'read'].sort())
  })

  it('makes the same run of the same plan, also when the plan has been through JSON', {
    timeout: 240_000,
  }, async () => {
    const plan = planOf(11, 'swarm')
    const first = await runPlan(plan)
    const second = await runPlan(JSON.parse(JSON.stringify(plan)))
    expect(second).toEqual(first)
    expect(planOf(11, 'swarm')).toEqual(plan)
    expect((await runPlan(planOf(12, 'swarm'))).traceHash).not.toBe(first.traceHash)
  })

  it('finds a disk that lies about its syncs, and shrinks the way to it', { timeout: 300_000 }, async () => {
    vi.spyOn(Inode.prototype, 'sync').mockImplementation(() => {})
    const { found } = await fuzz({ from: 1, to: 40, profile: 'storage' })
    expect(found).toBeDefined()
    if (!found) return
    const small = await shrink(found.plan, found.outcome, { run: (plan) => runPlan(plan), runsMax: 40 })
    expect(small.plan.faults.length).toBeLessThanOrEqual(found.plan.faults.length)
    expect(small.outcome.violations[0]?.invariant).toBe(found.outcome.violations[0]?.invariant)
    const scenario = JSON.parse(JSON.stringify(scenarioOfPlan(small.plan, small.outcome)))
    expect((await runPlan(scenario.system.plan)).traceHash).toBe(small.outcome.traceHash)
    vi.restoreAllMocks()
    expect((await runPlan(scenario.system.plan)).violations).toEqual([])
  })

  it('leaves out faults of machines that are no longer in a shrunk plan', { timeout: 240_000 }, async () => {
    const plan = { ...planOf(11, 'calm'), clients: 1, observers: 0, safetyMs: 3000 }
    const faults = [
      { kind: 'suspend', target: 'C5', atMs: 1600, forMs: 100 },
      { kind: 'cut', from: 'C5', to: 'N1', atMs: 1700, forMs: 100 },
      { kind: 'forget', from: 'C1', to: 'N1', atMs: 1800, forMs: 0 },
    ] as const
    const outcome = await runPlan({ ...plan, faults })
    expect(outcome.violations).toEqual([])
    expect(outcome.faults).toEqual({ forget: 1 })
  })

  it('continues where it stopped', { timeout: 240_000 }, async () => {
    const half = await fuzz({ from: 1, to: 4, profile: 'calm', progress: ({ seeds }) => seeds < 2 })
    expect(half).toMatchObject({ next: 3, seeds: 2 })
    const whole = await fuzz({ from: 1, to: 4, profile: 'calm' }, half)
    const { found: _found, ...sum } = await fuzz({ from: 1, to: 4, profile: 'calm' })
    expect(whole).toMatchObject(sum)
  })
})
