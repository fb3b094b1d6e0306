import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  type ClientMessage,
  type Command,
  decodeClientMessages,
  decodeServerMessages,
  encodeClientMessages,
  encodeCommand,
  encodeServerMessages,
  type Entry,
  CompactingMap,
  type Hex128,
  type HoldId,
  type Index,
  LockState,
  type Millis,
  type ServerMessage,
  type SessionId,
} from '@leasehold/core'
// The frames of the log are no part of the package's interface.
import { encodeFrame } from '../../packages/replica/src/log/frame.js'
import { print } from '../harness/comparison.js'
import { spreadOf } from '../harness/results-file.js'

const BASELINE = fileURLToPath(new URL('../micro-baseline.json', import.meta.url))
const BATCH = 64
const SAMPLE_MS = 20
/** The compiler has done its work after these. */
const WARMUP_SAMPLES = 15
const TTL_MS = 3_600_000 as Millis
const SECRET = 'a'.repeat(32) as Hex128
const NO_DATA = new Uint8Array(0)

/** Runs its work once, for `operations` operations. */
interface HotPath {
  readonly name: string
  readonly operations: number
  run(): void
}

/**
 * Nanoseconds of processor time per operation of the hot paths, and each as a multiple of a yardstick (JSON of one acquire and back) in the
 * same run, which makes machines comparable. `change` is that multiple against the one in micro-baseline.json: above 1 is
 * slower. `npm run bench -- micro-baseline` rewrites that file.
 */
export function micro(options: { rounds: number; seconds: number }): Readonly<Record<string, number>> {
  const paths = hotPaths()
  const yardstick = { name: 'yardstick', operations: 1, run: () => void JSON.parse(JSON.stringify(acquireOf(1, 1))) }
  const baseline: Record<string, number> = existsSync(BASELINE)
    ? (JSON.parse(readFileSync(BASELINE, 'utf8')) as Record<string, number>)
    : {}
  const multiples: Record<string, number> = {}
  const warmups = Math.min(WARMUP_SAMPLES, Math.ceil(options.seconds * WARMUP_SAMPLES))
  const samples = Math.max(3, Math.round((options.rounds * options.seconds * 1000) / SAMPLE_MS / paths.length))
  for (const path of paths) {
    const own: number[] = []
    const ratios: number[] = []
    for (let i = 0; i < warmups; i++) nanoseconds(path)
    nanoseconds(yardstick)
    for (let i = 0; i < samples; i++) {
      const ns = nanoseconds(path)
      own.push(ns)
      ratios.push(ns / nanoseconds(yardstick))
    }
    const multiple = spreadOf(ratios).median
    const before = baseline[path.name]
    multiples[path.name] = multiple
    const change = before === undefined ? {} : { change: Number((multiple / before).toPrecision(3)) }
    print({ workload: 'micro', path: path.name, nanoseconds: spreadOf(own), yardsticks: multiple, ...change })
  }
  return multiples
}

/** Makes the present multiples those that later ones are held against. */
export function microBaseline(options: { rounds: number; seconds: number }): void {
  writeFileSync(BASELINE, `${JSON.stringify(micro(options), undefined, 2)}\n`)
}

function nanoseconds({ run, operations }: HotPath): number {
  let times = 0
  const start = performance.now()
  const before = process.cpuUsage()
  while (performance.now() - start < SAMPLE_MS) {
    run()
    times += operations
  }
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1e3) / times
}

function acquireOf(session: number, request: number, name = `bench/${request % BATCH}`): Command {
  return {
    kind: 'acquire',
    session: session as SessionId,
    request,
    ack: { lowest: request, also: [] },
    locks: [{ name, mode: 'exclusive' }],
    waitMs: 30_000 as Millis,
    lockDelayMs: 0 as Millis,
    persistent: false,
    portable: false,
    data: NO_DATA,
  }
}

function hotPaths(): readonly HotPath[] {
  const commands = Array.from({ length: BATCH }, (_, i) => acquireOf(1, i + 1))
  const asked: ClientMessage[] = commands.map((command, i) => ({ kind: 'command', correlation: i + 1, command }))
  const answered: ServerMessage[] = commands.map((_, i) => ({
    kind: 'result',
    correlation: i + 1,
    result: {
      kind: 'granted',
      grant: { hold: (i + 9) as HoldId, locks: [{ name: `bench/${i}`, mode: 'exclusive', token: (i + 9) as HoldId }] },
    },
  }))
  const question = encodeClientMessages(asked)
  const answer = encodeServerMessages(answered)
  const entry = { term: 1, index: 1, kind: 'normal', data: encodeClientMessages(asked) } as const
  const frame = { hardState: undefined, base: undefined, entries: [entry] }
  const first = acquireOf(1, 1)
  return [
    { name: 'encode one acquire', operations: 1, run: () => void encodeCommand(first) },
    { name: 'encode a question, of 64', operations: BATCH, run: () => void encodeClientMessages(asked) },
    { name: 'decode a question, of 64', operations: BATCH, run: () => void decodeClientMessages(question) },
    { name: 'encode an answer, of 64', operations: BATCH, run: () => void encodeServerMessages(answered) },
    { name: 'decode an answer, of 64', operations: BATCH, run: () => void decodeServerMessages(answer) },
    { name: 'log frame of 64 commands', operations: BATCH, run: () => void encodeFrame(1, 1, frame) },
    applying(),
    renewing(),
    passing(),
  ]
}

function withSession(): { readonly state: LockState; readonly session: SessionId; next(): Index } {
  const state = LockState.create({ epoch: 1 })
  let index = 0
  const next = (): Index => ++index as Index
  const nonce = 'b'.repeat(32) as Hex128
  const open: Command = { kind: 'openSession', nonce, secret: SECRET, ttlMs: TTL_MS, client: '', local: false }
  const [opened] = state.apply({ at: 1 as Millis, commands: [open] }, next()).results
  if (opened?.kind !== 'opened') throw new Error('no session')
  return { state, session: opened.session, next }
}

/** Acquires of 64 names in one entry, and their releases in another. */
function applying(): HotPath {
  const { state, session, next } = withSession()
  let request = 0
  const run = (): void => {
    const taken = Array.from({ length: BATCH }, () => acquireOf(session, ++request))
    const granted = state.apply({ at: 1 as Millis, commands: taken } satisfies Entry, next()).results
    const given = granted.map((result): Command => {
      if (result.kind !== 'granted') throw new Error(`not granted: ${result.kind}`)
      const number = ++request
      return { kind: 'release', session, request: number, ack: { lowest: number, also: [] }, hold: result.grant.hold }
    })
    state.apply({ at: 1 as Millis, commands: given }, next())
  }
  return { name: 'apply an acquire or a release', operations: 2 * BATCH, run }
}

function renewing(): HotPath {
  const { state, session, next } = withSession()
  const commands = Array.from({ length: BATCH }, (): Command => ({ kind: 'renew', session }))
  const run = (): void => void state.apply({ at: 1 as Millis, commands }, next())
  return { name: 'apply a renewal', operations: BATCH, run }
}

/** Entries that come and go in a table that has grown old. */
function passing(): HotPath {
  const map = new CompactingMap<number, { readonly key: number }>()
  let key = 0
  const run = (): void => {
    const from = key
    for (let i = 0; i < BATCH; i++, key++) map.set(key, { key })
    for (let gone = from; gone < key; gone++) map.delete(gone)
  }
  return { name: 'an entry through a table', operations: BATCH, run }
}
