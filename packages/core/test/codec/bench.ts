// node scripts/run.mjs packages/core/test/codec/bench.ts: what the frequent messages cost, in nanoseconds.
import {
  type ClientMessage,
  crc32,
  decodeCommand,
  encodeCommand,
  Reader,
  readClientMessage,
  readServerMessage,
  type ServerMessage,
  Writer,
  writeClientMessage,
  writeCommand,
  writeServerMessage,
} from '../../src/index.js'
import { COMMANDS, PUSHES, RESULTS } from './samples.js'

const ROUNDS = 9
const ROUND_MS = 60

function cpuNs(): number {
  return process.cpuUsage().user * 1000
}

/** Nanoseconds of processor time per call (not of the clock on the wall: others may be at work); median of the rounds. */
function measure(act: () => void): number {
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    let calls = 0
    const start = cpuNs()
    while (cpuNs() - start < ROUND_MS * 1e6) {
      for (let i = 0; i < 1000; i++) act()
      calls += 1000
    }
    rounds.push((cpuNs() - start) / calls)
  }
  return rounds.sort((a, b) => a - b)[ROUNDS >> 1] as number
}

function report(name: string, bytes: number, encodeNs: number, decodeNs: number): void {
  const cells = [`${bytes} bytes`, `encode ${encodeNs.toFixed(0)} ns`, `decode ${decodeNs.toFixed(0)} ns`]
  console.log(name.padEnd(34), cells.map((cell) => cell.padStart(15)).join(''))
}

const writer = new Writer(4096)

function stream<T>(name: string, message: T, write: (w: Writer, m: T) => void, read: (r: Reader) => T): void {
  writer.reset()
  write(writer, message)
  const bytes = writer.take()
  report(
    name,
    bytes.length,
    measure(() => {
      writer.reset()
      write(writer, message)
    }),
    measure(() => void read(new Reader(bytes))),
  )
}

const clients: [string, ClientMessage][] = [
  ['acquire', { kind: 'command', correlation: 77, command: COMMANDS.acquire[0] as never }],
  ['release', { kind: 'command', correlation: 77, command: COMMANDS.release[1] as never }],
  ['renew', { kind: 'command', correlation: 77, command: COMMANDS.renew[1] as never }],
]
const servers: [string, ServerMessage][] = [
  ['result granted', { kind: 'result', correlation: 77, result: RESULTS.granted[0] as never }],
  ['result released', { kind: 'result', correlation: 77, result: RESULTS.released[0] as never }],
  ['push granted', { kind: 'push', push: PUSHES.granted as never }],
]

// All kinds before, so that each row is measured with the inline caches of a busy server.
const everything = Object.values(COMMANDS).flat()
measure(() => {
  for (const command of everything) decodeCommand(encodeCommand(command))
})

const acquire = COMMANDS.acquire[0] as never
const alone = encodeCommand(acquire)
report(
  'acquire, alone, with take()',
  alone.length,
  measure(() => {
    writer.reset()
    writeCommand(writer, acquire)
    writer.take()
  }),
  measure(() => void decodeCommand(alone)),
)
for (const [name, message] of clients) stream(name, message, writeClientMessage, readClientMessage)
for (const [name, message] of servers) stream(name, message, writeServerMessage, readServerMessage)

const json = JSON.stringify(clients[0]?.[1])
report(
  'acquire as JSON',
  json.length,
  measure(() => void JSON.stringify(clients[0]?.[1])),
  measure(() => void JSON.parse(json)),
)

const block = new Uint8Array(65_536).map((_, i) => i * 7)
const crcNs = measure(() => void crc32(block))
console.log(`crc32: ${((block.length / crcNs) * 1000).toFixed(0)} MB/s`)
