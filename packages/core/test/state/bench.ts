// node scripts/run.mjs packages/core/test/state/bench.ts: what the lock state costs, in processor time and memory.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  type Acquire,
  type Command,
  decodeEntry,
  encodeEntry,
  type Entry,
  type Index,
  LockState,
  type Millis,
  type Serial,
  type SessionId,
} from '../../src/index.js'

const NAMES = 64
const ROUNDS = 9
const PAIRS = 20_000
const HOLDS = Number(process.env.BENCH_HOLDS ?? 1_000_000)
const BATCH = 1000
/** Where ids start: above the clock, as in a service; at 1 with BENCH_FLOOR=0. */
const FLOOR = Number(process.env.BENCH_FLOOR ?? 11_780_000_000_000) as Serial

/** Others may be at work on this machine: processor time, not the clock on the wall. */
function cpuMs(): number {
  return process.cpuUsage().user / 1000
}

function timed<T>(act: () => T): { result: T; ms: number } {
  const start = cpuMs()
  const result = act()
  return { result, ms: cpuMs() - start }
}

class Feed {
  index = 0
  at = 1_700_000_000_000
  readonly state = LockState.create({ epoch: 1, limits: { holdsPerSession: 2_000_000 }, floor: FLOOR })

  apply(commands: readonly Command[]) {
    return this.state.apply({ at: this.at as Millis, commands }, ++this.index as Index)
  }

  open(n: number): SessionId {
    const nonce = n.toString(16).padStart(32, '0')
    const ttlMs = 86_400_000 as Millis
    const { results } = this.apply([
      { kind: 'openSession', nonce, secret: nonce, ttlMs, client: 'bench', local: false },
    ])
    const result = results[0]
    if (result?.kind !== 'opened') throw new RangeError(JSON.stringify(result))
    return result.session
  }
}

const NO_DATA = new Uint8Array(0)

function acquire(session: SessionId, request: number, name: string): Acquire {
  const plain = { waitMs: 0, lockDelayMs: 0 as Millis, persistent: false, portable: false, data: NO_DATA }
  const ack = { lowest: request, also: [] }
  return { kind: 'acquire', session, request, ack, locks: [{ name, mode: 'exclusive' }], ...plain }
}

/** Nanoseconds per acquire and release, one entry each: median of the rounds. */
function pairs(): number {
  const feed = new Feed()
  const session = feed.open(1)
  const names = Array.from({ length: NAMES }, (_, i) => `bench/lock-${String(i).padStart(8, '0')}`)
  let request = 0
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { ms } = timed(() => {
      for (let i = 0; i < PAIRS; i++) {
        const got = feed.apply([acquire(session, ++request, names[i % NAMES] as string)]).results[0]
        if (got?.kind !== 'granted') throw new RangeError(JSON.stringify(got))
        const ack = { lowest: ++request, also: [] }
        feed.apply([{ kind: 'release', session, request, ack, hold: got.grant.hold }])
      }
    })
    rounds.push((ms * 1e6) / PAIRS)
  }
  return rounds.sort((a, b) => a - b)[ROUNDS >> 1] as number
}

/** Renewals of many sessions, as batches do them. */
function renewals(): number {
  const feed = new Feed()
  const sessions = Array.from({ length: BATCH }, (_, i) => feed.open(i + 1))
  const commands = sessions.map((session): Command => ({ kind: 'renew', session }))
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { ms } = timed(() => {
      for (let i = 0; i < 100; i++) {
        feed.at += 10
        feed.apply(commands)
      }
    })
    rounds.push((ms * 1e6) / (100 * BATCH))
  }
  return rounds.sort((a, b) => a - b)[ROUNDS >> 1] as number
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** As the log brings them: every entry is decoded, so that no name is shared with this program. */
function entryOf(session: SessionId, from: number, at: number): Entry {
  const commands = Array.from({ length: BATCH }, (_, i) =>
    acquire(session, from + i + 1, `bench/lock-${String(from + i).padStart(9, '0')}`),
  )
  return decodeEntry(encodeEntry({ at: at as Millis, commands }))
}

function million(): void {
  const feed = new Feed()
  const session = feed.open(1)
  const before = heapBytes()
  const { ms } = timed(() => {
    for (let from = 0; from < HOLDS; from += BATCH) {
      feed.at += 1
      feed.state.apply(entryOf(session, from, feed.at), ++feed.index as Index)
    }
  })
  feed.apply([{ kind: 'renew', session, ack: { lowest: HOLDS + 1, also: [] } }])
  const bytes = (heapBytes() - before) / HOLDS
  const kept = feed.state.machine.holds.size
  console.log(
    `${kept} holds: ${bytes.toFixed(0)} bytes each; ${((ms * 1e6) / kept).toFixed(0)} ns to decode and grant one`,
  )
  const written = timed(() => feed.state.snapshot())
  console.log(`snapshot: ${written.ms.toFixed(0)} ms, ${(written.result.length / kept).toFixed(1)} bytes each`)
  const read = timed(() => LockState.restore(written.result))
  console.log(`restore: ${read.ms.toFixed(0)} ms`)
  if (read.result.hash() !== feed.state.hash()) throw new RangeError('another state was restored')
}

console.log(`acquire and release: ${pairs().toFixed(0)} ns`)
console.log(`renew: ${renewals().toFixed(0)} ns`)
million()
