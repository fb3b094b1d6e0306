import { type Command, type Hex128, type Index, LockState, type Millis, type SessionId } from '@leasehold/core'
import {
  type DiskFile,
  encodeMeta,
  type MemberInfo,
  type Network,
  type Platform,
  noopLogger,
  Replica,
  type StateExport,
} from '@leasehold/replica'
import { backupHeader, backupPieces, NodeClock, NodeDisk, NodeRandom } from '@leasehold/replica/node'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PerformanceObserver } from 'node:perf_hooks'
// How a folder is made is no part of the package's interface.
import { initializeFolder } from '../../packages/replica/src/storage/storage.js'
import { print } from '../harness/comparison.js'
import { writeResults } from '../harness/results-file.js'
import { overlap, type Span } from '../harness/snapshot-slices.js'

const CLUSTER = 'c0'.repeat(16)
const HOLDS_PER_SESSION = 100
const LONG_TTL_MS = 3_600_000
const TIMEOUT_MS = 120_000
/** Shorter collections do not matter. */
const GC_LEAST_MS = 0.5

/** How long the state of so many holds keeps a member from everything else, at a stretch. Milliseconds. */
export interface UsesMeasured {
  readonly holds: number
  readonly load: Longest
  readonly send: Longest
  readonly install: Longest
  readonly untilInstalledMs: number
  readonly backup: Longest
  readonly untilBackupMs: number
}

interface Longest {
  readonly ms: number
  /** Without the garbage collector, which both members share here. */
  readonly withoutGcMs: number
}

/** The longest stretch of work of one member since it was last asked. */
class Stretches {
  private spans: Span[] = []

  constructor(private readonly collections: readonly Span[]) {}

  timed<A extends unknown[]>(run: (...args: A) => void): (...args: A) => void {
    return (...args) => {
      const start = performance.now()
      run(...args)
      this.spans.push({ start, end: performance.now() })
    }
  }

  async take(): Promise<Longest> {
    // The observer is told of a collection some time after it.
    await new Promise((resolve) => setTimeout(resolve, 50))
    const { spans, collections } = this
    this.spans = []
    const longest = (lengths: readonly number[]): number => {
      return Number(lengths.reduce((most, length) => Math.max(most, length), 0).toPrecision(3))
    }
    return {
      ms: longest(spans.map(({ start, end }) => end - start)),
      withoutGcMs: longest(spans.map((span) => span.end - span.start - overlap(span, collections))),
    }
  }
}

/** With a million held locks, written to bench/results/snapshots.json. */
export async function snapshotUsesWritten(): Promise<void> {
  const measured = await snapshotUses(1_000_000)
  print({ workload: 'snapshots', ...measured })
  writeResults('snapshots', measured)
}

/** Reads, sends, installs and backs up a state of `holds` held locks, with two members in this process. */
export async function snapshotUses(holds: number): Promise<UsesMeasured> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-uses-'))
  const handlers = new Map<number, (from: number, frame: Uint8Array) => void>()
  const replicas: Replica[] = []
  const collections: Span[] = []
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      if (duration >= GC_LEAST_MS) collections.push({ start: startTime, end: startTime + duration })
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  const [first, second] = [1, 2].map((node) => ({ node, name: `n${node}`, peer: `h${node}:1`, url: '' })) as [
    MemberInfo,
    MemberInfo,
  ]
  const open = async (info: MemberInfo, stretches: Stretches): Promise<Replica> => {
    const platform = timedPlatform(join(folder, info.name), info.node, stretches, handlers)
    const founding = { cluster: { id: CLUSTER, node: info.node, founders: [first] } }
    const replica = await new Promise<Replica>((resolve, reject) => {
      stretches.timed(() =>
        Replica.open({ platform, bootstrap: founding, name: info.name }, (error, opened) =>
          opened ? resolve(opened) : reject(error),
        ),
      )()
    })
    replicas.push(replica)
    return replica
  }
  try {
    await foundWith(new NodeDisk(join(folder, first.name)), first, stateOf(holds))
    const [ofLeader, ofLearner] = [new Stretches(collections), new Stretches(collections)]
    const leader = await open(first, ofLeader)
    const load = await ofLeader.take()
    const learner = await open(second, ofLearner)
    await ofLeader.take()
    await ofLearner.take()
    let begun = performance.now()
    await new Promise<void>((resolve, reject) => {
      leader.changeMembership({ kind: 'add', member: second }, (result) =>
        result.kind === 'changed' ? resolve() : reject(new Error(result.kind)),
      )
    })
    await until(() => learner.stale().state.machine.holds.size === holds)
    const untilInstalledMs = Math.round(performance.now() - begun)
    const [send, install] = [await ofLeader.take(), await ofLearner.take()]
    begun = performance.now()
    await backup(leader, ofLeader)
    const untilBackupMs = Math.round(performance.now() - begun)
    return { holds, load, send, install, untilInstalledMs, backup: await ofLeader.take(), untilBackupMs }
  } finally {
    observer.disconnect()
    for (const replica of replicas) await new Promise<void>((resolve) => replica.stop(resolve))
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A backup as the service makes it, until its last piece is there. */
async function backup(leader: Replica, stretches: Stretches): Promise<void> {
  const copy = await new Promise<StateExport>((resolve, reject) => {
    leader.read((view) => {
      if ('refused' in view) return reject(new Error(view.refused.code))
      leader.exportState((answer) => ('refused' in answer ? reject(new Error(answer.refused.code)) : resolve(answer)))
    })
  })
  const facts = { cluster: CLUSTER, term: 1, member: 'n1', read: 'linearizable', takenAt: '', members: [] } as const
  const pieces = backupPieces(backupHeader(copy, facts), copy)
  let ended = false
  const next = stretches.timed(() => {
    ended = pieces.next().done === true
  })
  while (!ended) await new Promise<void>((resolve) => setImmediate(() => resolve(next())))
}

async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + TIMEOUT_MS
  while (!condition()) {
    if (performance.now() > end) throw new Error('not reached in time')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function timedPlatform(
  dir: string,
  node: number,
  stretches: Stretches,
  handlers: Map<number, (from: number, frame: Uint8Array) => void>,
): Platform {
  const clock = new NodeClock(true)
  const disk = new NodeDisk(dir)
  const create = disk.create.bind(disk)
  const open = disk.open.bind(disk)
  const timedFile = (file: DiskFile): DiskFile => {
    const write = file.write.bind(file)
    file.write = (offset, chunks, sync, done) => write(offset, chunks, sync, stretches.timed(done))
    return file
  }
  disk.open = (name) => timedFile(open(name))
  disk.create = (name, size, done) => {
    create(
      name,
      size,
      stretches.timed((error, file) => done(error, file && timedFile(file))),
    )
  }
  const network: Network = {
    send(to, _lane, frame) {
      setImmediate(() => handlers.get(to)?.(node, frame))
    },
    receive(handler) {
      handlers.set(node, stretches.timed(handler))
    },
    setPeers() {},
  }
  return {
    disk,
    clock: {
      monotonicMs: () => clock.monotonicMs(),
      wallMs: () => Date.now(),
      after: (delayMs, callback) => clock.after(delayMs, stretches.timed(callback)),
    },
    random: new NodeRandom(),
    network,
    log: noopLogger,
  }
}

function foundWith(disk: NodeDisk, info: MemberInfo, state: LockState): Promise<void> {
  const configuration = { voters: [info.node], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const meta = encodeMeta({ cluster: CLUSTER, configuration, members: [info] })
  const identity = { node: info.node, name: info.name, cluster: CLUSTER, epoch: 1 }
  const snapshot = { index: state.index, term: 1, meta, state: state.snapshot() }
  return new Promise((resolve, reject) => {
    initializeFolder(disk, identity, snapshot, (error) => (error ? reject(error) : resolve()))
  })
}

function stateOf(holds: number): LockState {
  const state = LockState.create({ epoch: 1, limits: { holds: 2 * holds, sessions: 2 * holds } })
  let index = 0
  const apply = (command: Command) => {
    const [result] = state.apply({ at: 1 as Millis, commands: [command] }, ++index as Index).results
    return result
  }
  let session = 0 as SessionId
  for (let i = 0; i < holds; i++) {
    if (i % HOLDS_PER_SESSION === 0) {
      const nonce = i.toString(16).padStart(32, '0') as Hex128
      const ttlMs = LONG_TTL_MS as Millis
      const opened = apply({ kind: 'openSession', nonce, secret: nonce, ttlMs, client: '', local: false })
      if (opened?.kind !== 'opened') throw new Error(`openSession: ${opened?.kind}`)
      session = opened.session
    }
    const name = `lock-${String(i).padStart(15, '0')}`
    const result = apply({
      kind: 'acquire',
      session,
      request: 1 + (i % HOLDS_PER_SESSION),
      ack: { lowest: 1 + (i % HOLDS_PER_SESSION), also: [] },
      locks: [{ name, mode: 'exclusive' }],
      waitMs: 0 as Millis,
      lockDelayMs: 0 as Millis,
      persistent: false,
      portable: false,
      data: new Uint8Array(0),
    })
    if (result?.kind !== 'granted') throw new Error(`acquire: ${result?.kind}`)
  }
  return state
}
