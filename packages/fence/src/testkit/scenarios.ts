import { TOKEN_MAX } from '@leasehold/core'
import { Finding, type Stage, type StageHold } from './stage.js'
import { Stopped } from './pauses.js'
import { isSettled, randomOf, turns, turnsOf } from './turns.js'

export interface Scenario {
  readonly id: string
  readonly title: string
  /** Why the scenario cannot be run with this resource; undefined when it can. */
  skip?(stage: Stage): string | undefined
  run(stage: Stage, seed: number): Promise<void>
}

const STAGGER_STEPS = 12
/** Bound of the pause points of one write. */
const PAUSE_POINTS_MAX = 20
/** After this time a holder counts as blocked by the stopped one. */
const BLOCKED_MS = 50
const STORM_ROUNDS = 30
const STORM_HOLDERS = 4
const DOUBLE_EXACT_MAX = 2n ** 53n

/** The scenarios in order of their tokens, because marks only grow. */
export const SCENARIOS: readonly Scenario[] = [
  {
    id: 'repeat',
    title: 'a holder opens and writes several times',
    async run(stage) {
      const hold = stage.grant()
      const seen = await stage.begin(hold)
      await stage.write(hold, seen + 1)
      await stage.open(hold)
      await stage.write(hold, seen + 2)
      if ((await stage.read(hold)) !== seen + 2) throw new Finding('an acknowledged write is missing')
      await stage.expectValue(seen + 2)
    },
  },
  {
    id: 'digits',
    title: 'tokens of different lengths are compared as numbers: 9 and 10, 99 and 100',
    skip: (stage) => (stage.last >= 98n ? 'the tokens of this run begin above 99' : undefined),
    async run(stage) {
      for (const short of [9n, 99n]) {
        if (short <= stage.last) continue
        await late(stage, stage.grant(short), stage.grant(short + 1n))
      }
    },
  },
  {
    id: 'A1',
    title: 'a pause between read and write that outlasts the lease',
    run: (stage) => late(stage, stage.grant(), stage.grant()),
  },
  {
    id: 'A2',
    title: 'a write that the network delays for 90 seconds while two others hold the lock',
    async run(stage) {
      const [first, second, third] = [stage.grant(), stage.grant(), stage.grant()]
      const seen = await stage.begin(first)
      await stage.write(second, (await stage.begin(second)) + 1)
      await stage.write(third, (await stage.begin(third)) + 1)
      await stage.expectRejected(first, seen + 1, third.token)
      await stage.expectRejected(second, seen + 2, third.token)
      await stage.expectValue(seen + 2)
    },
  },
  {
    id: 'A3',
    title: 'a pause inside the write, between any check and the effect',
    async run(stage) {
      await stoppedAtEachPoint(stage)
      // Also pauses without pause points: the next holder begins k turns after the late write has begun.
      const probe = stage.grant()
      const value = await stage.begin(probe)
      const length = await turnsOf(() => stage.write(probe, value))
      for (let step = 0; step <= STAGGER_STEPS; step++) {
        await overlapping(stage, Math.round((step * length * 1.25) / STAGGER_STEPS))
      }
    },
  },
  {
    id: 'A4',
    title: 'a late write that arrives between the read and the first write of the next holder',
    async run(stage) {
      const [first, second] = [stage.grant(), stage.grant()]
      const seen = await stage.begin(first)
      const fresh = await stage.begin(second)
      await stage.expectRejected(first, seen + 1, second.token)
      await stage.write(second, fresh + 1)
      await stage.expectValue(seen + 1)
    },
  },
  {
    id: 'A6',
    title: 'work that outlasts the lease: the hold is lost in the middle',
    async run(stage) {
      const [first, second] = [stage.grant(), stage.grant()]
      const seen = await stage.begin(first)
      first.lose()
      await stage.write(second, (await stage.begin(second)) + 1)
      await stage.expectRejected(first, seen + 1, second.token)
      await stage.expectValue(seen + 1)
    },
  },
  {
    id: 'A10',
    title: 'the process that checks the token is killed and restarted',
    skip: (stage) => (stage.resource.restart === undefined ? 'no restart() was given' : undefined),
    async run(stage) {
      const [first, second] = [stage.grant(), stage.grant()]
      const seen = await stage.begin(first)
      await stage.open(second)
      await stage.resource.restart?.()
      await stage.expectRejected(first, seen + 1, second.token)
      await stage.expectValue(seen)
    },
  },
  {
    id: 'removed',
    title: 'the mark survives the deletion of the data',
    skip: (stage) => (stage.resource.remove === undefined ? 'no remove() was given' : undefined),
    async run(stage) {
      const [first, second] = [stage.grant(), stage.grant()]
      const seen = await stage.begin(first)
      await stage.begin(second)
      await stage.write(second, seen + 1)
      await stage.resource.remove?.(second)
      await stage.expectRejected(first, seen + 1, second.token)
      const third = stage.grant()
      await stage.open(third)
      await stage.write(third, seen)
      await stage.expectValue(seen)
    },
  },
  {
    id: 'storm',
    title: 'several concurrent late holders: no acknowledged unit is lost',
    run: storm,
  },
  {
    id: 'double',
    title: 'tokens are compared exactly: 2^53 and 2^53 + 1, up to 2^63 - 1',
    skip: (stage) => (stage.last >= DOUBLE_EXACT_MAX - 1n ? 'the tokens of this run begin above 2^53' : undefined),
    async run(stage) {
      await late(stage, stage.grant(DOUBLE_EXACT_MAX), stage.grant(DOUBLE_EXACT_MAX + 1n))
      // Leaves higher tokens for expectValue.
      await late(stage, stage.grant(TOKEN_MAX - 4n), stage.grant(TOKEN_MAX - 3n))
    },
  },
]

/** The first hold reads; the second opens, reads and writes; then the first writes late. */
async function late(stage: Stage, first: StageHold, second: StageHold): Promise<void> {
  const seen = await stage.begin(first)
  const fresh = await stage.begin(second)
  await stage.write(second, fresh + 1)
  await stage.expectRejected(first, seen + 1, second.token)
  await stage.expectValue(seen + 1)
}

/** Runs a late write and the whole unit of the next holder, `offset` turns apart. */
async function overlapping(stage: Stage, offset: number): Promise<void> {
  const [first, second] = [stage.grant(), stage.grant()]
  const seen = await stage.begin(first)
  const writing = stage.attempt(() => stage.resource.write(first, seen + 1))
  await turns(offset)
  const fresh = await stage.begin(second)
  await stage.write(second, fresh + 1)
  const accepted = await writing
  await stage.expectValue(seen + (accepted ? 2 : 1))
}

/** Stops a late write at its n-th pause point while the next holder works, for every n. */
async function stoppedAtEachPoint(stage: Stage): Promise<void> {
  for (let n = 1; n <= PAUSE_POINTS_MAX; n++) {
    const [first, second] = [stage.grant(), stage.grant()]
    const seen = await stage.begin(first)
    const writing = new Stopped(n, () => stage.attempt(() => stage.resource.write(first, seen + 1)))
    const ended = writing.result.then(
      () => 'ended' as const,
      () => 'ended' as const,
    )
    const outcome = await Promise.race([writing.reached.then(() => 'stopped' as const), ended])
    const next = nextUnit(stage, second)
    // The next holder may block on locks of the stopped write.
    for (const end = performance.now() + BLOCKED_MS; !(await isSettled(next)) && performance.now() < end; );
    writing.resume()
    const accepted = await writing.result
    await next
    await stage.expectValue(seen + (accepted ? 2 : 1))
    if (outcome === 'ended') return
  }
}

async function nextUnit(stage: Stage, hold: StageHold): Promise<void> {
  await stage.write(hold, (await stage.begin(hold)) + 1)
}

async function storm(stage: Stage, seed: number): Promise<void> {
  const random = randomOf(seed)
  let value = await stage.begin(stage.grant())
  for (let round = 0; round < STORM_ROUNDS; round++) {
    const holds = Array.from({ length: STORM_HOLDERS }, () => stage.grant())
    const pauses = holds.map(
      () => [random() * 12, random() * 12, random() * 12].map(Math.floor) as [number, number, number],
    )
    const units = holds.map(async (hold, i) => {
      const [before, between, after] = pauses[i] as [number, number, number]
      return await stage.attempt(async () => {
        await turns(before)
        await stage.resource.open(hold)
        await turns(between)
        const seen = await stage.resource.read(hold)
        await turns(after)
        await stage.resource.write(hold, seen + 1)
      })
    })
    const acknowledged = (await Promise.all(units)).filter(Boolean).length
    const after = await stage.begin(stage.grant())
    if (after !== value + acknowledged) {
      throw new Finding(
        `${acknowledged} units were acknowledged, but the value went from ${value} to ${after} (round ${round}, seed ${seed})`,
      )
    }
    value = after
  }
}
