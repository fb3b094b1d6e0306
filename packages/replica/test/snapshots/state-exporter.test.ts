import { type Command, type Index, LockState, type Millis } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { Applier } from '../../src/driver/applier.js'
import { type ExportRequest, StateExporter, type EncodedState } from '../../src/snapshots/state-exporter.js'
import type { ClusterMeta } from '../../src/cluster-meta.js'
import { acquire, SimClock } from '../support/world.js'

const configuration = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
const meta = { cluster: 'ab'.repeat(16), configuration, members: [] }

/** An exporter of a state with some holds. By default, each slice encodes one element. */
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
  const writer = new StateExporter({ clock, guard, sliceBytes, applier, meta: () => cluster.meta })
  return { clock, writer, hold, state: applier.state, cluster }
}

function requestOf(): ExportRequest & { readonly got: EncodedState[]; halts: number } {
  const got: EncodedState[] = []
  const request = {
    got,
    halts: 0,
    exported: (state: EncodedState) => void got.push(state),
    halted: () => void request.halts++,
  }
  return request
}

const bytesOf = (exported: EncodedState | undefined): Buffer => Buffer.concat(exported?.state.pieces ?? [])

describe('an exported state', () => {
  it('has the members of its own entry, not those that changed during the export', () => {
    const { clock, writer, hold, cluster } = writerOf(20)
    const [first, second] = [requestOf(), requestOf()]
    writer.request(first)
    clock.runOne(clock.now + 100)
    hold()
    const later: ClusterMeta = { ...meta, configuration: { ...configuration, voters: [1, 2, 3] } }
    cluster.meta = later
    writer.request(second)
    while (clock.runOne(clock.now + 100));
    expect(first.got[0]?.meta).toEqual(meta)
    expect(second.got[0]?.meta).toEqual(later)
  })

  it('is never older than its request: requests during an export share the next one', () => {
    const { clock, writer, hold, state } = writerOf(20)
    const [first, second, third] = [requestOf(), requestOf(), requestOf()]
    const atFirst = state.snapshot()
    const [hash, index] = [state.hash(), state.index]
    writer.request(first)
    for (let i = 0; i < 5; i++) clock.runOne(clock.now + 100)
    hold()
    writer.request(second)
    hold()
    writer.request(third)
    expect(first.got).toEqual([])
    while (first.got.length === 0) expect(clock.runOne(clock.now + 100)).toBe(true)
    expect(Buffer.compare(bytesOf(first.got[0]), atFirst)).toBe(0)
    expect(first.got[0]).toMatchObject({ index, hash, epoch: 1, meta })
    // The next export started when the first was complete: later changes are not in it.
    const atSecond = state.snapshot()
    hold()
    while (clock.runOne(clock.now + 100));
    expect([second.got.length, third.got.length]).toEqual([1, 1])
    expect(second.got[0]?.state).toBe(third.got[0]?.state)
    expect(Buffer.compare(bytesOf(second.got[0]), atSecond)).toBe(0)
    expect(state.machine.hash.observer).toBeUndefined()
  })

  it('is abandoned when its last request is cancelled, and waiting requests get the next one', () => {
    const { clock, writer, hold, state } = writerOf(20)
    const [first, second, third] = [requestOf(), requestOf(), requestOf()]
    writer.request(first)
    const view = state.machine.hash.observer
    writer.request(second)
    writer.request(third)
    writer.cancel(second)
    hold()
    writer.cancel(first)
    expect(state.machine.hash.observer).not.toBe(view)
    while (clock.runOne(clock.now + 100));
    expect([first.got.length, second.got.length, third.got.length]).toEqual([0, 0, 1])
    writer.request(first)
    writer.cancel(first)
    expect([state.machine.hash.observer, clock.pending]).toEqual([undefined, 0])
  })

  it('is ready at once when it fits into one slice', () => {
    const { writer, state } = writerOf(20, 1_000_000)
    const request = requestOf()
    writer.request(request)
    expect(Buffer.compare(bytesOf(request.got[0]), state.snapshot())).toBe(0)
  })

  it('notifies all waiting requests when the member stops', () => {
    const { writer, state, clock } = writerOf(20)
    const [first, second] = [requestOf(), requestOf()]
    writer.request(first)
    writer.request(second)
    writer.halt()
    expect([first.halts, second.halts]).toEqual([1, 1])
    expect([state.machine.hash.observer, clock.pending]).toEqual([undefined, 0])
  })
})
