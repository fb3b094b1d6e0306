import { type Command, type Index, LockState, type Millis } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { Applier } from '../../src/driver/applier.js'
import { type StateWish, StateWriter, type WrittenState } from '../../src/driver/state-writer.js'
import type { ClusterMeta } from '../../src/members.js'
import { acquire, SimClock } from '../support/world.js'

const configuration = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
const meta = { cluster: 'ab'.repeat(16), configuration, members: [] }

/** A writer over a state of some holds; as it is, each slice writes one element. */
function writerOf(holds: number, sliceBytes = 1) {
  const clock = new SimClock()
  const applier = new Applier(LockState.create({ epoch: 1 }), 0, 1, { events: 100, bytes: 100_000 })
  const apply = (command: Command): void => {
    const index = (applier.index + 1) as Index
    applier.state.apply({ at: 1 as Millis, commands: [command] }, index)
    applier.index = index
  }
  const nonce = 'ab'.repeat(16)
  apply({ kind: 'openSession', nonce, secret: nonce, ttlMs: 60_000 as Millis, client: '', local: false })
  let next = 1
  const hold = (): void => apply(acquire(1 as never, next, `l${next++}`))
  for (let i = 0; i < holds; i++) hold()
  const guard = (action: () => void): void => action()
  const cluster = { meta: meta as ClusterMeta }
  const writer = new StateWriter({ clock, guard, sliceBytes, applier, meta: () => cluster.meta })
  return { clock, writer, hold, state: applier.state, cluster }
}

function wishOf(): StateWish & { readonly got: WrittenState[]; halts: number } {
  const got: WrittenState[] = []
  const wish = {
    got,
    halts: 0,
    written: (state: WrittenState) => void got.push(state),
    halted: () => void wish.halts++,
  }
  return wish
}

const bytesOf = (written: WrittenState | undefined): Buffer => Buffer.concat(written?.state.pieces ?? [])

describe('the state, written down for several', () => {
  it('comes with the members of its own entry, not with those that were changed while it was written', () => {
    const { clock, writer, hold, cluster } = writerOf(20)
    const [first, second] = [wishOf(), wishOf()]
    writer.want(first)
    clock.runOne(clock.now + 100)
    hold()
    const later: ClusterMeta = { ...meta, configuration: { ...configuration, voters: [1, 2, 3] } }
    cluster.meta = later
    writer.want(second)
    while (clock.runOne(clock.now + 100));
    expect(first.got[0]?.meta).toEqual(meta)
    expect(second.got[0]?.meta).toEqual(later)
  })

  it('is never older than a wish: who comes while it is written gets the next one, together with others', () => {
    const { clock, writer, hold, state } = writerOf(20)
    const [first, second, third] = [wishOf(), wishOf(), wishOf()]
    const atFirst = state.snapshot()
    const [hash, index] = [state.hash(), state.index]
    writer.want(first)
    for (let i = 0; i < 5; i++) clock.runOne(clock.now + 100)
    hold()
    writer.want(second)
    hold()
    writer.want(third)
    expect(first.got).toEqual([])
    while (first.got.length === 0) expect(clock.runOne(clock.now + 100)).toBe(true)
    expect(Buffer.compare(bytesOf(first.got[0]), atFirst)).toBe(0)
    expect(first.got[0]).toMatchObject({ index, hash, epoch: 1, meta })
    // The next one began as soon as the first was done, and what comes now is not in it.
    const atSecond = state.snapshot()
    hold()
    while (clock.runOne(clock.now + 100));
    expect([second.got.length, third.got.length]).toEqual([1, 1])
    expect(second.got[0]?.state).toBe(third.got[0]?.state)
    expect(Buffer.compare(bytesOf(second.got[0]), atSecond)).toBe(0)
    expect(state.machine.hash.observer).toBeUndefined()
  })

  it('is not finished when nobody wants it any more, and whoever waits then gets the next', () => {
    const { clock, writer, hold, state } = writerOf(20)
    const [first, second, third] = [wishOf(), wishOf(), wishOf()]
    writer.want(first)
    const view = state.machine.hash.observer
    writer.want(second)
    writer.want(third)
    writer.drop(second)
    hold()
    writer.drop(first)
    expect(state.machine.hash.observer).not.toBe(view)
    while (clock.runOne(clock.now + 100));
    expect([first.got.length, second.got.length, third.got.length]).toEqual([0, 0, 1])
    writer.want(first)
    writer.drop(first)
    expect([state.machine.hash.observer, clock.pending]).toEqual([undefined, 0])
  })

  it('that fits into one slice is there at once', () => {
    const { writer, state } = writerOf(20, 1_000_000)
    const wish = wishOf()
    writer.want(wish)
    expect(Buffer.compare(bytesOf(wish.got[0]), state.snapshot())).toBe(0)
  })

  it('tells everybody who waits when the member stops', () => {
    const { writer, state, clock } = writerOf(20)
    const [first, second] = [wishOf(), wishOf()]
    writer.want(first)
    writer.want(second)
    writer.halt()
    expect([first.halts, second.halts]).toEqual([1, 1])
    expect([state.machine.hash.observer, clock.pending]).toEqual([undefined, 0])
  })
})
