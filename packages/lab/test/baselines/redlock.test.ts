import { describe, expect, it } from 'vitest'
import { redlock, type RedlockSpec } from '../../src/baselines/index.js'
import type { HeldBy } from '../../src/scenarios/index.js'
import { World } from '../../src/world/index.js'

const SECOND = 1_000_000

/** Plays one acquire of one client, and tells when it had the lock and until when it was valid by its own rule. */
async function acquire(spec: RedlockSpec, fault: (world: World) => void = () => {}) {
  const world = new World({ seed: 4 })
  const system = redlock(world, spec)
  const process = world.machine('C1').spawn({ promises: true })
  let held: HeldBy | undefined
  let answeredUs: number | undefined
  process.after(SECOND, () => {
    void system
      .client(process)
      .acquire('L', {})
      .then((answer) => {
        held = answer
        answeredUs = world.nowUs
      })
  })
  await world.run(SECOND - 1)
  fault(world)
  let validUntilUs = 0
  await world.run(40 * SECOND, () => {
    if (held?.isValid() === true) validUntilUs = world.nowUs
    return false
  })
  return { held, answered: (answeredUs ?? 0) / SECOND - 1, validUntil: validUntilUs / SECOND - 1 }
}

/** Something must happen for time to be looked at. */
function ticking(world: World): void {
  for (let us = world.nowUs; us < 40 * SECOND; us += 1000) world.at(us, 'tick', () => {})
}

describe('Redlock, step by step', () => {
  it('asks one node after the other, and is valid for TTL − elapsed − drift', async () => {
    const { held, answered, validUntil } = await acquire({}, ticking)
    expect(held).toBeDefined()
    expect(answered).toBeCloseTo(0.05, 3)
    // 10 s from step 1, less 1 % and 2 ms.
    expect(validUntil).toBeCloseTo(10 - 0.1 - 0.002, 2)
  })

  it('asks all at once when told so', async () => {
    expect((await acquire({ send: 'parallel' })).answered).toBeCloseTo(0.01, 3)
  })

  it('tries the next node after the timeout, and needs a majority', async () => {
    const cut = (names: readonly string[]) => (world: World) => {
      for (const name of names) world.network.cut('C1', name)
    }
    const three = await acquire({}, cut(['A', 'B']))
    expect(three.held).toBeDefined()
    expect(three.answered).toBeCloseTo(0.13, 3)
    expect((await acquire({}, cut(['A', 'B', 'C']))).held).toBeUndefined()
  })

  it('counts the lease from the answers when step 3 is left out', async () => {
    const slow = (world: World) => {
      ticking(world)
      for (const node of ['A', 'B', 'C', 'D', 'E']) world.network.link(node, 'C1').change({ minUs: 2 * SECOND })
    }
    const spec = { send: 'parallel', nodeTimeout: 5 } as const
    expect((await acquire(spec, slow)).validUntil).toBeCloseTo(9.9, 1)
    expect((await acquire({ ...spec, step3: false }, slow)).validUntil).toBeCloseTo(12, 1)
  })

  it('releases all nodes when it did not get the lock in time', async () => {
    const world = new World({ seed: 4 })
    const system = redlock(world, { ttl: 1, send: 'parallel', nodeTimeout: 5 })
    const got: string[] = []
    for (const [name, at] of [
      ['C1', 1],
      ['C2', 5],
    ] as const) {
      const process = world.machine(name).spawn({ promises: true })
      process.after(at * SECOND, () => {
        void system
          .client(process)
          .acquire('L', {})
          .then((held) => got.push(`${name} ${held === undefined ? 'no' : 'yes'}`))
      })
    }
    // The answers take longer than the TTL: step 5. The keys of C1 expire meanwhile anyway; C2 is fast.
    const undo = ['A', 'B', 'C', 'D', 'E'].map((node) => world.network.link(node, 'C1').change({ minUs: 2 * SECOND }))
    await world.run(10 * SECOND)
    for (const back of undo) back()
    expect(got.sort()).toEqual(['C1 no', 'C2 yes'])
  })
})
