import { ProtocolEngine, webSocketConnector, type WebSocketLike } from '@leasehold/client'
import type { EngineSession } from '@leasehold/client'
import {
  type Command,
  type Hex128,
  type HoldId,
  type Index,
  LockState,
  type Millis,
  type SessionId,
} from '@leasehold/core'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { WebSocket } from 'ws'
import { print } from '../harness/comparison.js'
import { cpuMs } from '../harness/cpu-time.js'
import { measure } from '../harness/closed-loop.js'
import { startAll } from '../systems/peer.js'
import { spreadOf, writeResults } from '../harness/results-file.js'
import { startLeasehold } from '../systems/leasehold.js'
import { snapshotInSlices } from '../harness/snapshot-slices.js'

const LONG_TTL_MS = 3_600_000
const TIMEOUT_MS = 60_000
const AT_ONCE = 200
const TASKS = 64
const NO_DATA = new Uint8Array(0)

/** How much is held; the tests take less. */
export interface Sizes {
  readonly few: number
  readonly many: number
  readonly sessions: number
  readonly snapshotHolds: number
  readonly renewing: number
  readonly renewTtlMs: number
}

export const SIZES: Sizes = {
  few: 100,
  many: 100_000,
  sessions: 10_000,
  snapshotHolds: 1_000_000,
  renewing: 100_000,
  renewTtlMs: 10_000,
}

/** What grows with the number of locks and sessions, and what does not. */
export async function growth(options: { rounds: number; seconds: number }, sizes: Sizes = SIZES) {
  const state = await stateGrowth(sizes.snapshotHolds)
  print({ workload: 'growth-state', ...state })
  const rate = await rateGrowth(sizes, options)
  print({ workload: 'growth-rate', ...rate })
  const renewals = await manyRenewals(sizes, options.seconds)
  print({ workload: 'growth-renewals', ...renewals })
  return { state, rate, renewals }
}

/** The same, written to bench/results/growth.json. */
export async function growthWritten(options: { rounds: number; seconds: number }): Promise<void> {
  writeResults('growth', await growth(options))
}

/** A lock name of 20 bytes. */
function nameOf(i: number): string {
  return `lock-${String(i).padStart(15, '0')}`
}

/** The lock state alone: bytes per held lock, and what a snapshot takes, in one go and in slices with other work between them. */
export async function stateGrowth(holds: number) {
  const before = heapBytes()
  const state = LockState.create({ epoch: 1, limits: { holds: 2 * holds, sessions: 2 * holds } })
  let index = 0
  const apply = (commands: readonly Command[]) => state.apply({ at: 1 as Millis, commands }, ++index as Index).results
  const sessions: SessionId[] = []
  for (let i = 0; i < Math.max(1, holds / 100); i++) {
    const nonce = i.toString(16).padStart(32, '0') as Hex128
    const ttlMs = LONG_TTL_MS as Millis
    const [opened] = apply([{ kind: 'openSession', nonce, secret: nonce, ttlMs, client: '', local: false }])
    if (opened?.kind !== 'opened') throw new Error(`openSession: ${opened?.kind}`)
    sessions.push(opened.session)
  }
  const held = new Float64Array(holds)
  const perSession = heapBytes()
  for (let i = 0; i < holds; i++) {
    const session = sessions[i % sessions.length] as SessionId
    const request = 1 + Math.floor(i / sessions.length)
    const [result] = apply([acquireOf(session, request, nameOf(i))])
    if (result?.kind !== 'granted') throw new Error(`acquire: ${result?.kind}`)
    held[i] = result.grant.hold
  }
  const acknowledged = 1 + Math.ceil(holds / sessions.length)
  for (const session of sessions) apply([{ kind: 'renew', session, ack: { lowest: acknowledged, also: [] } }])
  const full = heapBytes()
  const times: number[] = []
  let bytes = 0
  for (let i = 0; i < 3; i++) {
    const start = performance.now()
    bytes = state.snapshot().length
    times.push(performance.now() - start)
  }
  // Locks from all over the state are released and acquired again, each by the session that had it.
  let turn = 0
  const numbers = sessions.map(() => acknowledged)
  const passOn = (count: number): void => {
    for (let k = 0; k < count; k++, turn++) {
      const i = (turn * 7919) % holds
      const own = i % sessions.length
      const session = sessions[own] as SessionId
      apply([{ kind: 'release', session, hold: held[i] as HoldId }])
      const [result] = apply([acquireOf(session, (numbers[own] as number)++, nameOf(i))])
      if (result?.kind !== 'granted') throw new Error(`acquire: ${result?.kind}`)
      held[i] = result.grant.hold
    }
  }
  const pairs = Math.ceil(holds / 20)
  passOn(pairs)
  const pairNs = cpuNs(pairs, passOn)
  const view = state.beginSnapshot()
  const pairNsWithView = cpuNs(pairs, passOn)
  view.close()
  const slices = await snapshotInSlices(state, () => passOn(PAIRS_BETWEEN))
  return {
    holds,
    bytesPerHeldLock: Math.round((full - perSession) / holds),
    bytesPerSession: Math.round((perSession - before - held.byteLength) / sessions.length),
    snapshotBytes: bytes,
    snapshotMs: spreadOf(times),
    slices,
    pairNs,
    pairNsWithView,
  }
}

/** Pairs of release and acquire that are applied between two slices of a snapshot. */
const PAIRS_BETWEEN = 100

/** Processor time of each of so many. */
function cpuNs(count: number, run: (count: number) => void): number {
  const before = process.cpuUsage()
  run(count)
  const { user, system } = process.cpuUsage(before)
  return Math.round(((user + system) * 1000) / count)
}

function acquireOf(session: SessionId, request: number, name: string): Command {
  const locks = [{ name, mode: 'exclusive' as const }]
  const terms = { lockDelayMs: 0 as Millis, persistent: false, portable: false, data: NO_DATA }
  return { kind: 'acquire', session, request, ack: { lowest: request, also: [] }, locks, waitMs: 0 as Millis, ...terms }
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** After a full collection. */
function heapBytes(): number {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function connect(url: string): ProtocolEngine {
  return new ProtocolEngine({
    urls: [url],
    connector: webSocketConnector((address) => new WebSocket(address) as unknown as WebSocketLike),
  })
}

/** Pairs per second at 64 in flight while little and while much is held, in turn. */
async function rateGrowth(sizes: Sizes, options: { rounds: number; seconds: number }) {
  const { systems, stop } = await startAll([() => startLeasehold(), () => startLeasehold()])
  const [small, large] = systems as [(typeof systems)[number], (typeof systems)[number]]
  const engines = [connect(small.url), connect(large.url)] as const
  try {
    await fill(engines[0], 1, sizes.few)
    await fill(engines[1], sizes.sessions, Math.ceil(sizes.many / sizes.sessions))
    const few: number[] = []
    const many: number[] = []
    for (let round = 0; round < options.rounds; round++) {
      few.push((await measure(small.distinct, TASKS, options.seconds)).opsPerSecond)
      many.push((await measure(large.distinct, TASKS, options.seconds)).opsPerSecond)
    }
    const ratios = spreadOf(many.map((rate, i) => rate / (few[i] as number)))
    return { few: sizes.few, many: sizes.many, fewPairs: spreadOf(few), manyPairs: spreadOf(many), ratios }
  } finally {
    for (const engine of engines) await engine.close()
    await stop()
  }
}

/** Opens sessions, and takes `each` locks in every one. */
async function fill(engine: ProtocolEngine, count: number, each: number): Promise<void> {
  await open(engine, count, LONG_TTL_MS, async (session, i) => {
    for (let k = 0; k < each; k++) {
      await session.acquire({
        locks: [{ name: nameOf(i * each + k), mode: 'exclusive' }],
        waitMs: 0,
        lockDelayMs: 0,
        persistent: false,
        portable: false,
        data: NO_DATA,
      })
    }
  })
}

async function open(
  engine: ProtocolEngine,
  count: number,
  ttlMs: number,
  opened: (session: EngineSession, i: number) => Promise<void> | void,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let i = next++; i < count; i = next++) {
      await opened(await engine.openSession({ ttlMs, client: 'bench', timeoutMs: TIMEOUT_MS }), i)
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, worker))
}

/** Sessions of one connection; the service binds no more to it. */
const PER_CONNECTION = 10_000

/** Renews each session at a third of its TTL after its last time, for as long as it runs. */
class Renewer {
  answered = 0
  failed = 0
  readonly answerMs: number[] = []
  private queue: { readonly session: EngineSession; readonly at: number }[] = []
  private readonly timer: NodeJS.Timeout

  constructor(private readonly ttlMs: number) {
    this.timer = setInterval(() => this.turn(), TURN_MS)
  }

  add(session: EngineSession): void {
    this.queue.push({ session, at: performance.now() + this.ttlMs / 3 })
  }

  stop(): void {
    clearInterval(this.timer)
  }

  /** All have the same interval: the first renewed is the first due. */
  private turn(): void {
    const now = performance.now()
    let due = 0
    while (due < this.queue.length && (this.queue[due] as { at: number }).at <= now) due++
    for (const { session } of this.queue.splice(0, due)) {
      this.add(session)
      session.renew(this.ttlMs).then(
        () => {
          if (++this.answered % SAMPLE_EVERY === 0) this.answerMs.push(performance.now() - now)
        },
        () => {
          this.failed++
        },
      )
    }
  }
}

const TURN_MS = 5
const SAMPLE_EVERY = 100

/** Many sessions, each renewed at a third of its TTL: how many renewals fail, and what it costs. */
async function manyRenewals({ renewing, renewTtlMs }: Sizes, seconds: number) {
  const service = await startLeasehold()
  const engines: ProtocolEngine[] = []
  const renewer = new Renewer(renewTtlMs)
  let sessions = 0
  try {
    for (let left = renewing; left > 0; left -= PER_CONNECTION) {
      const engine = connect(service.url)
      engines.push(engine)
      await open(engine, Math.min(left, PER_CONNECTION), renewTtlMs, (session) => {
        sessions++
        renewer.add(session)
      })
    }
    const before = cpuMs(service.pid)
    const own = process.cpuUsage()
    const [answered, start] = [renewer.answered, performance.now()]
    renewer.answerMs.length = 0
    await new Promise((resolve) => setTimeout(resolve, Math.max(renewTtlMs, seconds * 1000)))
    const tookMs = performance.now() - start
    const { user, system } = process.cpuUsage(own)
    const after = cpuMs(service.pid)
    const serviceMs = before === undefined || after === undefined ? undefined : after - before - (user + system) / 1000
    const sorted = renewer.answerMs.toSorted((a, b) => a - b)
    return {
      sessions,
      ttlMs: renewTtlMs,
      wantedPerSecond: Math.round((sessions / renewTtlMs) * 3000),
      renewalsPerSecond: Math.round(((renewer.answered - answered) / tookMs) * 1000),
      failed: renewer.failed,
      answerMs: { median: sorted[sorted.length >> 1], p99: sorted[Math.floor(sorted.length * 0.99)] },
      serviceProcessors: serviceMs === undefined ? undefined : Number((serviceMs / tookMs).toFixed(2)),
      clientProcessors: Number(((user + system) / 1000 / tookMs).toFixed(2)),
    }
  } finally {
    renewer.stop()
    for (const engine of engines) await engine.close()
    await service.stop()
  }
}
