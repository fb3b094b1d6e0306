import { randomBytes } from 'node:crypto'
import {
  type ClientMessage,
  type Command,
  decodeServerMessages,
  encodeClientMessages,
  type Hex128,
  type HoldId,
  type Millis,
  type Result,
  type SessionId,
  STREAM_VERSION,
} from '@leasehold/core'
import { streamUrl } from '@leasehold/client'
import { WebSocket } from 'ws'
import { print } from '../harness/comparison.js'
import { measure, rounded, type Subject } from '../harness/closed-loop.js'
import { spreadOf } from '../harness/results-file.js'
import { startLeasehold } from '../systems/leasehold.js'

const TASKS = 64
/** Until the compiler has done its work. */
const WARMUP_SECONDS = 1

/**
 * Processor time of this process per operation (an acquire or a release), 64 in flight: with the client, and with the
 * least that can speak the same frames over the same WebSocket: no deadlines, no repeats, no errors. The difference is
 * what the client adds.
 */
export async function clientCpu(options: { rounds: number; seconds: number }): Promise<void> {
  const service = await startLeasehold()
  try {
    const bare = await openBare(service.url)
    const subjects: readonly Subject[] = [service.distinct, bare]
    const used = new Map<string, number[]>(subjects.map(({ system }) => [system, []]))
    for (const subject of subjects) await usedBy(subject, WARMUP_SECONDS)
    for (let round = 0; round < options.rounds; round++) {
      for (const subject of subjects) used.get(subject.system)?.push(await usedBy(subject, options.seconds))
    }
    const spreads = new Map([...used].map(([system, all]) => [system, spreadOf(all)]))
    for (const [system, microseconds] of spreads) print({ workload: 'client-cpu', system, microseconds })
    const [ours, least] = [...spreads.values()].map(({ median }) => median) as [number, number]
    print({ workload: 'client-cpu', addedMicroseconds: rounded(ours - least) })
    bare.close()
  } finally {
    await service.stop()
  }
}

/** Microseconds of processor time per operation. */
async function usedBy(subject: Subject, seconds: number): Promise<number> {
  let pairs = 0
  const before = process.cpuUsage()
  const counted: Subject = {
    system: subject.system,
    async pair(task) {
      const ms = await subject.pair(task)
      pairs++
      return ms
    },
  }
  await measure(counted, TASKS, seconds)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / (2 * pairs)
}

/** Requests by number, answers by correlation, one frame for each turn: nothing else. */
async function openBare(url: string): Promise<Subject & { close(): void }> {
  const socket = new WebSocket(streamUrl(url), { perMessageDeflate: false })
  const waiting: (((result: Result) => void) | undefined)[] = []
  let out: ClientMessage[] = []
  let next = 0
  let opened: (() => void) | undefined
  const flush = (): void => {
    socket.send(encodeClientMessages(out))
    out = []
  }
  const ask = (command: Command): Promise<Result> =>
    new Promise((resolve) => {
      const correlation = (next = (next % 4096) + 1)
      waiting[correlation] = resolve
      if (out.length === 0) setImmediate(flush)
      out.push({ kind: 'command', correlation, command })
    })
  socket.on('message', (data: Buffer) => {
    for (const message of decodeServerMessages(data)) {
      if (message.kind === 'welcome') opened?.()
      if (message.kind === 'error') throw new Error(message.refused.message)
      if (message.kind === 'result') waiting[message.correlation]?.(message.result)
    }
  })
  await new Promise((resolve) => socket.once('open', resolve))
  await new Promise<void>((resolve) => {
    opened = resolve
    socket.send(
      encodeClientMessages([{ kind: 'hello', version: STREAM_VERSION, apiKey: '', client: 'bare', epoch: 0 }]),
    )
  })
  const session = await openSession(ask)
  const stop = keepAlive(ask, session)
  let request = 0
  return {
    system: 'bare frames',
    pair: (task) => barePair(ask, session, () => ++request, task),
    close: () => stop(socket),
  }
}

async function openSession(ask: (command: Command) => Promise<Result>): Promise<SessionId> {
  const nonce = randomBytes(16).toString('hex') as Hex128
  const secret = '0'.repeat(32) as Hex128
  const result = await ask({
    kind: 'openSession',
    nonce,
    secret,
    ttlMs: 30_000 as Millis,
    client: 'bare',
    local: false,
  })
  if (result.kind !== 'opened') throw new Error(`openSession: ${result.kind}`)
  return result.session
}

function keepAlive(ask: (command: Command) => Promise<Result>, session: SessionId): (socket: WebSocket) => void {
  const timer = setInterval(() => void ask({ kind: 'renew', session }), 10_000)
  return (socket) => {
    clearInterval(timer)
    socket.close()
  }
}

const NO_DATA = new Uint8Array(0)

async function barePair(
  ask: (command: Command) => Promise<Result>,
  session: SessionId,
  number: () => number,
  task: number,
): Promise<number> {
  const start = performance.now()
  const first = number()
  const granted = await ask({
    kind: 'acquire',
    session,
    request: first,
    // With so many in flight, whatever is this far back has been answered.
    ack: { lowest: Math.max(1, first - 2 * TASKS), also: [] },
    locks: [{ name: `bare/${task}`, mode: 'exclusive' }],
    waitMs: 0 as Millis,
    lockDelayMs: 0 as Millis,
    persistent: false,
    portable: false,
    data: NO_DATA,
  })
  if (granted.kind !== 'granted') throw new Error(`acquire: ${granted.kind}`)
  const hold: HoldId = granted.grant.hold
  const second = number()
  const released = await ask({
    kind: 'release',
    session,
    request: second,
    ack: { lowest: Math.max(1, second - 2 * TASKS), also: [] },
    hold,
  })
  if (released.kind !== 'released') throw new Error(`release: ${released.kind}`)
  return performance.now() - start
}
