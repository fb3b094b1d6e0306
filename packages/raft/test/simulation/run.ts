import { type Faults, Group } from './group.js'
import { limitsOf, momentsOf } from './moments.js'
import { Prng } from './prng.js'

/** A world takes milliseconds. This many are about as much work as one seed of whole clusters in the lab. */
const WORLDS = 10
const STEPS = 600
const LIVENESS_STEPS = 800
/** Some seeds continue with a leader that receives no messages. */
const DEAF_PERCENT = 20

/** Every world draws how likely each fault is. */
function faultsOf(random: Prng): Faults {
  // What needs a rare order of events must not be drowned by everything else that goes wrong.
  const quiet = random.pick([20, 50, 80])
  const some = (max: number) => (random.chance(quiet) ? 0 : random.below(max))
  return {
    loss: some(30),
    duplicate: some(50),
    delayMax: 1 + some(random.chance(60) ? 4 : 20),
    crash: some(150),
    cut: some(random.pick([40, 100])),
    slowDisk: some(80),
    stall: some(random.pick([200, 600])),
    stallTerm: some(60),
    compact: some(random.pick([60, 400])),
    change: some(random.pick([40, 120])),
    transfer: some(random.pick([20, 100])),
    ended: some(20),
    moments: momentsOf(random, some),
  }
}

/** All worlds of one seed. How many entries were applied in them. */
export function run(seed: number): number {
  let applied = 0
  for (let world = 0; world < WORLDS; world++) applied += play(seed, world).safety.appliedTo
  return applied
}

/** One world: faults, then healing. Throws when a promise is broken or the group does not come back. */
function play(seed: number, world: number): Group {
  const random = new Prng(seed * WORLDS + world)
  const faults = faultsOf(random)
  // An even number of founders has halves that are no majorities; of five a few may acknowledge what is cut again. Three
  // come to the point in the fewest steps.
  const founders = random.pick([2, 2, 3, 3, 3, 4, 5])
  const size = Math.min(5, founders + random.below(3))
  const group = new Group(random, [1, 2, 3, 4, 5].slice(0, size), founders, faults, limitsOf(random))
  try {
    for (let i = 0; i < STEPS; i++) group.step(true)
    group.heal()
    settle(group)
    if (random.chance(DEAF_PERCENT)) replaceDeaf(group)
    return group
  } catch (error) {
    throw new Error(
      `seed ${seed}: world ${world}: ${(error as Error).message}\n${JSON.stringify(faults)}\n${group.summary()}`,
      {
        cause: error,
      },
    )
  }
}

function settle(group: Group): void {
  const before = group.safety.appliedTo
  for (let i = 0; i < LIVENESS_STEPS; i++) {
    group.step(false)
    if (i > 100 && group.safety.appliedTo > before + 5 && group.settled()) return
  }
  throw new Error(`not settled after healing\n${group.summary()}`)
}

/** A leader that is heard but receives nothing must step down: otherwise the group makes no progress as long as that lasts. */
function replaceDeaf(group: Group): void {
  const leader = group.newestLeader()
  // Without it there must be a majority.
  if (leader === undefined || leader.configuration.voters.length < 3) return
  const { id, term } = leader
  group.deafen(id)
  const before = group.safety.appliedTo
  for (let i = 0; i < LIVENESS_STEPS; i++) {
    group.step(false)
    const next = group.newestLeader()
    if (next !== undefined && next.term > term && next.id !== id && group.safety.appliedTo > before + 5) return
  }
  throw new Error(`no member took over from ${id}, which is heard and receives nothing\n${group.summary()}`)
}
