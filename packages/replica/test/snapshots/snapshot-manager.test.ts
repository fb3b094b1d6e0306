import type { Command, Index, Millis } from '@leasehold/core'
import { crc32, LockState } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { Applier } from '../../src/driver/applier.js'
import type { ReceivedSnapshot } from '../../src/snapshots/snapshot-transfer.js'
import { SnapshotManager, type ReceiveOutcome } from '../../src/snapshots/snapshot-manager.js'
import { StateExporter } from '../../src/snapshots/state-exporter.js'
import { encodeMeta } from '../../src/cluster-meta.js'
import { noopLogger } from '../../src/noop.js'
import { readSnapshot } from '../../src/snapshots/snapshot-store.js'
import { initializeFolder, openStorage, type Storage } from '../../src/storage/storage.js'
import { SimDisk } from '../support/sim-disk.js'
import { acquire, SimClock, World } from '../support/world.js'

const SLICED = { snapshotBytes: 4096, snapshotSliceBytes: 64 }

const files = (disk: SimDisk) =>
  disk.list().filter((name) => name.startsWith('snapshot-') && !name.startsWith('snapshot-0000000000000000'))

describe('a snapshot that is made in slices', () => {
  it('equals the state at its start byte for byte, while further entries are applied', () => {
    const world = new World()
    const replica = world.open({ ...SLICED, snapshotSliceBytes: 400 })
    const states = new Map<number, Uint8Array>()
    replica.onApplied(({ index }) => states.set(index, replica.stale().state.snapshot()))
    const session = world.openSession(3_600_000)
    const seen = new Set<string>()
    let meanwhile = 0
    for (let i = 1; i <= 600; i++) {
      // The first ones stay; of the others each is released by the next turn, so that much is changed in every slice.
      const hold = world.acquire(session, i, `lock-${i}`, { data: new Uint8Array(i % 50) })
      if (i > 100) world.submit({ kind: 'release', session, hold })
      world.advance(i % 3)
      for (const name of files(world.disk)) {
        if (seen.has(name)) continue
        seen.add(name)
        const { index, state } = readSnapshot(world.disk, name)
        expect(Buffer.compare(state, states.get(index) as Uint8Array), name).toBe(0)
        meanwhile = Math.max(meanwhile, replica.status.appliedIndex - index)
      }
    }
    expect(seen.size).toBeGreaterThan(4)
    expect(meanwhile).toBeGreaterThan(10)
  })

  it('is dropped when the member stops, and leaves nothing behind', () => {
    const { world, replica } = underWay()
    const { state } = replica.stale()
    world.stop()
    expect(replica.status.failure).toBeUndefined()
    expect(state.machine.hash.observer).toBeUndefined()
    expect(files(world.disk)).toEqual([])
    world.advance(1000)
    expect(world.clock.pending).toBe(0)
  })

  it('is lost in a power failure: the member starts from the earlier state, and takes another one', () => {
    const { world, holds } = underWay()
    world.crash(() => 0, SLICED)
    expect(world.replica.stale().state.machine.holds.size).toBe(holds)
    const session = [...world.replica.stale().state.machine.sessions.keys()][0] as never
    for (let i = 1; i <= 100; i++) world.acquire(session, 1000 + i, `more-${i}`)
    world.advance(5000)
    expect(files(world.disk).length).toBeGreaterThan(0)
  })

  it('does not stop the member when the disk has become full, and a later one is written', () => {
    const { world, replica } = underWay({ reserveBytes: 0 })
    world.disk.room = 0
    world.advance(5000)
    expect(replica.status).toMatchObject({ role: 'leader', failure: undefined })
    expect(replica.stale().state.machine.hash.observer).toBeUndefined()
    expect(files(world.disk)).toEqual([])
    world.disk.room = 10_000_000
    world.advance(5000)
    const session = [...replica.stale().state.machine.sessions.keys()][0] as never
    for (let i = 1; i <= 100; i++) world.acquire(session, 1000 + i, `more-${i}`)
    world.advance(5000)
    expect(files(world.disk).length).toBeGreaterThan(0)
  })

  it('runs one at a time, and is cancelled by one from the leader', () => {
    const { clock, disk, applier, snapshotting, meta, storage, raft } = parts()
    const { state } = applier
    applier.bytesSinceSnapshot = 1_000_000
    snapshotting.maybeTake(1)
    const view = state.machine.hash.observer
    expect(view).toBeDefined()
    clock.runOne(clock.now + 100)
    apply(applier, { kind: 'steal', hold: 3 as never, actor: '', reason: '' })
    snapshotting.take()
    expect(state.machine.hash.observer).toBe(view)
    const other = LockState.restore(state.snapshot())
    other.apply({ at: 5000 as Millis, commands: [] }, 500 as Index)
    let installed = 0
    snapshotting.receiveSnapshot(receivedOf(other.snapshot(), meta), (outcome) => {
      installed = typeof outcome === 'object' ? outcome.received.index : -1
    })
    expect(state.machine.hash.observer).toBeUndefined()
    // It is read in slices, between which entries are applied and no other one is begun.
    let slices = 0
    for (; clock.runOne(clock.now + 100); slices++) {
      apply(applier, { kind: 'steal', hold: 3 as never, actor: '', reason: '' })
      snapshotting.take()
    }
    expect(slices).toBeGreaterThan(10)
    expect(files(disk)).toEqual([])
    disk.run()
    expect(installed).toBe(500)
    expect(files(disk).map((name) => readSnapshot(disk, name).index)).toEqual([500])
    // After it, own ones are taken again.
    raft.committed = 501
    applier.install(LockState.restore(other.snapshot()), 500, 1)
    apply(applier, { kind: 'steal', hold: 4 as never, actor: '', reason: '' })
    const wanted = applier.state.snapshot()
    snapshotting.take()
    while (clock.runOne(clock.now + 100));
    disk.run()
    expect(storage.snapshots.isIdle).toBe(true)
    expect(Buffer.compare(readSnapshot(disk, files(disk).at(-1) as string).state, wanted)).toBe(0)
  })
})

describe('a snapshot that made way for one of the leader', () => {
  it('is repeated soon if that one cannot be saved', () => {
    const { clock, disk, meta, applier, snapshotting } = parts()
    applier.bytesSinceSnapshot = 1_000_000
    snapshotting.maybeTake(500_000)
    expect(applier.state.machine.hash.observer).toBeDefined()
    const outcomes: unknown[] = []
    snapshotting.receiveSnapshot(receivedOf(applier.state.snapshot().subarray(0, -1), meta), (one) =>
      outcomes.push(one),
    )
    while (clock.runOne(clock.now + 100));
    expect(outcomes).toEqual(['failed'])
    snapshotting.maybeTake(500_000)
    while (clock.runOne(clock.now + 100));
    disk.run()
    expect(files(disk).map((name) => readSnapshot(disk, name).index)).toEqual([applier.index])
    expect(applier.bytesSinceSnapshot).toBe(0)
  })
})

describe('a snapshot of the leader', () => {
  it('is not saved when it is unreadable, and the next one is accepted', () => {
    const { clock, disk, meta, applier, snapshotting } = parts()
    const other = LockState.restore(applier.state.snapshot())
    other.apply({ at: 5000 as Millis, commands: [] }, 500 as Index)
    const outcomes: unknown[] = []
    const receive = (state: Uint8Array): void => {
      snapshotting.receiveSnapshot(receivedOf(state, meta), (outcome) => outcomes.push(indexOf(outcome)))
      while (clock.runOne(clock.now + 100));
      disk.run()
    }
    receive(other.snapshot().subarray(0, -1))
    expect([outcomes, files(disk)]).toEqual([['failed'], []])
    receive(other.snapshot())
    expect(outcomes).toEqual(['failed', 500])
    expect(files(disk).map((name) => readSnapshot(disk, name).index)).toEqual([500])
  })

  it('is not written when the log covers it: before decoding, after decoding, and after the write of another one', () => {
    const at = (when: 'before' | 'read' | 'written') => {
      const { clock, disk, meta, applier, snapshotting, raft } = parts()
      const outcomes: unknown[] = []
      if (when === 'written') {
        snapshotting.take()
        while (clock.runOne(clock.now + 100));
        expect(snapshotting.isBusy).toBe(true)
      }
      if (when === 'before') raft.committed = 500
      snapshotting.receiveSnapshot(receivedOf(applier.state.snapshot(), meta), (outcome) =>
        outcomes.push(indexOf(outcome)),
      )
      raft.committed = 500
      while (clock.runOne(clock.now + 100));
      disk.run()
      return [outcomes, files(disk).map((name) => readSnapshot(disk, name).index === applier.index)]
    }
    expect(at('before')).toEqual([['known'], []])
    expect(at('read')).toEqual([['known'], []])
    expect(at('written')).toEqual([['known'], [true]])
  })

  it('for which there is no room is taken in once there is', () => {
    const { clock, disk, meta, applier, snapshotting } = parts(100)
    const outcomes: unknown[] = []
    const receive = (): void => {
      snapshotting.receiveSnapshot(receivedOf(applier.state.snapshot(), meta), (outcome) =>
        outcomes.push(indexOf(outcome)),
      )
      while (clock.runOne(clock.now + 100));
      disk.run()
    }
    disk.room = 0
    receive()
    expect([outcomes, files(disk)]).toEqual([['failed'], []])
    disk.room = 10_000_000
    receive()
    expect(outcomes).toEqual(['failed', 500])
  })

  it('must be installed once it is durable: the next one checks that', () => {
    const { clock, disk, meta, snapshotting } = parts()
    const state = LockState.create({ epoch: 1 }).snapshot()
    const receive = (): void => snapshotting.receiveSnapshot(receivedOf(state, meta), () => {})
    receive()
    while (clock.runOne(clock.now + 100));
    disk.run()
    expect(receive).toThrow(/snapshot 500 is durable, but only 51 is committed/)
  })

  it('is dropped when the member stops during decoding', () => {
    const { clock, disk, meta, applier, snapshotting } = parts()
    const outcomes: unknown[] = []
    snapshotting.receiveSnapshot(receivedOf(applier.state.snapshot(), meta), (outcome) => outcomes.push(outcome))
    expect([clock.pending, snapshotting.isBusy]).toEqual([1, false])
    snapshotting.halt()
    expect([clock.pending, outcomes, files(disk)]).toEqual([0, [], []])
  })
})

const indexOf = (outcome: ReceiveOutcome): unknown => (typeof outcome === 'object' ? outcome.received.index : outcome)

/** A snapshot as received from the leader. */
function receivedOf(state: Uint8Array, meta: Parameters<typeof encodeMeta>[0]): ReceivedSnapshot {
  const content = { index: 500, term: 1, meta: encodeMeta(meta), state, checksum: crc32(state) }
  return { ...content, from: 2, transfer: 1, leaderTerm: 1 }
}

/** A member that has started a snapshot of many slices. */
function underWay(options: { reserveBytes?: number } = {}) {
  const world = new World()
  const replica = world.open({ ...SLICED, snapshotSliceBytes: 1, ...options })
  const session = world.openSession(3_600_000)
  const { machine } = replica.stale().state
  let holds = 0
  while (machine.hash.observer === undefined) {
    holds++
    world.acquire(session, holds, `lock-${holds}`)
  }
  world.advance(10)
  expect(machine.hash.observer).toBeDefined()
  return { world, replica, holds }
}

function apply(applier: Applier, command: Command): void {
  applier.state.apply({ at: 1 as Millis, commands: [command] }, (applier.index + 1) as Index)
  applier.index = (applier.index + 1) as Index
}

/** The snapshot parts of a member, with some holds. */
function parts(reserveBytes = 4096) {
  const disk = new SimDisk()
  const clock = new SimClock()
  const configuration = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const meta = { cluster: 'ab'.repeat(16), configuration, members: [] }
  const state = LockState.create({ epoch: 1 })
  const identity = { node: 1, name: 'n1', cluster: meta.cluster, epoch: 1 }
  initializeFolder(disk, identity, { index: 0, term: 0, meta: encodeMeta(meta), state: state.snapshot() }, () => {})
  disk.run()
  let storage: Storage | undefined
  const options = { segmentBytes: 256 * 1024, spareSegments: 1, reserveBytes, changed() {} }
  openStorage(disk, options, (_error, opened) => {
    storage = opened
  })
  disk.run()
  if (storage === undefined) throw new Error('not opened')
  const applier = new Applier(state, 0, 1, { events: 100, bytes: 100_000 })
  const nonce = 'ab'.repeat(16)
  apply(applier, { kind: 'openSession', nonce, secret: nonce, ttlMs: 60_000 as Millis, client: '', local: false })
  for (let i = 1; i <= 50; i++) apply(applier, acquire(1 as never, i, `l${i}`))
  const guard = (action: () => void): void => action()
  const slices = { clock, guard, sliceBytes: 16 }
  const writer = new StateExporter({ ...slices, applier, meta: () => meta })
  const raft = { committed: applier.index as number }
  const committed = (): number => raft.committed
  const snapshotting = new SnapshotManager({
    ...slices,
    storage,
    applier,
    exporter: writer,
    log: noopLogger,
    committed,
    saved() {},
  })
  return { disk, clock, applier, meta, storage, snapshotting, raft }
}
