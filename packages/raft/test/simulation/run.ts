import { type Faults, Group } from './group.js'
import { limitsOf, momentsOf } from './moments.js'
import { Prng } from './prng.js'

const STEPS = 600
const LIVENESS_STEPS = 800

/** Every seed is a world of its own: it draws how likely each fault is. */
function faultsOf(random: Prng): Faults {
  const some = (max: number) => (random.chance(40) ? 0 : random.below(max))
  return {
    loss: some(30),
    duplicate: some(50),
    delayMax: 1 + some(20),
    crash: some(150),
    cut: some(40),
    slowDisk: some(80),
    compact: some(60),
    change: some(40),
    transfer: some(20),
    ended: some(20),
    moments: momentsOf(random),
  }
}

/** One world of one seed: faults, then healing. Throws when a promise is broken or the group does not come back. */
export function run(seed: number): Group {
  const random = new Prng(seed)
  const faults = faultsOf(random)
  const group = new Group(random, [1, 2, 3, 4, 5].slice(0, 3 + random.below(3)), faults, limitsOf(random))
  try {
    for (let i = 0; i < STEPS; i++) group.step(true)
    group.heal()
    const before = group.safety.appliedTo
    for (let i = 0; i < LIVENESS_STEPS; i++) {
      group.step(false)
      if (i > 100 && group.safety.appliedTo > before + 5 && group.settled()) return group
    }
    throw new Error(`not settled after healing\n${group.summary()}`)
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}\n${JSON.stringify(faults)}\n${group.summary()}`, {
      cause: error,
    })
  }
}
