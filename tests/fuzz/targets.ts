import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import {
  type ClientMessage,
  crc32,
  decodeClientMessages,
  decodeEntry,
  decodeServerMessages,
  encodeClientMessages,
  encodeServerMessages,
  LockState,
  parseToken,
  type ServerMessage,
} from '@leasehold/core'
import type { Message } from '@leasehold/raft'
import { CLIENT_MESSAGES, ENTRIES, SERVER_MESSAGES } from '../../packages/core/test/codec/samples.js'
import { encodeEntry } from '../../packages/core/src/codec/commands.js'
import { message } from '../../packages/raft/src/messages.js'
import { decodeBody, encodeFrame, frameAt } from '../../packages/replica/src/log/frame.js'
import { readSnapshot } from '../../packages/replica/src/snapshots/snapshot-store.js'
import { decodeMeta } from '../../packages/replica/src/cluster-meta.js'
import { AcknowledgedMemory } from '../../packages/replica/src/rollback/acknowledged-memory.js'
import { readMessage, writeMessage } from '../../packages/replica/src/wire/consensus-messages.js'
import { PeerFrames } from '../../packages/replica/src/wire/peer-frames.js'
import { readStatement, writeStatement } from '../../packages/replica/src/wire/statements.js'
import { readChunk, readChunkAck } from '../../packages/replica/src/wire/snapshot-chunks.js'
import { ROUTES } from '../../packages/server/src/http/app.js'
import { parseCursor } from '../../packages/core/src/cursor.js'
import { parseHoldHandle, parseSessionHandle } from '../../packages/server/src/http/handles.js'
import {
  decodeSender,
  encodeSender,
  frameHead,
  readFrames,
  SERVER_FRAMES,
} from '../../packages/server/src/peers/framing.js'
import { check } from '../../packages/server/src/http/request-schemas.js'
import { decodeRejoinRequest } from '../../packages/server/src/peers/rejoin.js'
import type { SeededRandom } from '../chaos/random.js'
import { concat, mutate, object } from './mutate.js'

/** Something that reads bytes of strangers: it may refuse them by a typed error, and do nothing else. */
export interface Target {
  readonly name: string
  once(random: SeededRandom): void
}

const utf8 = new TextEncoder()
const CLUSTER = '0123456789abcdef0123456789abcdef'
const SELF = 2
const SEED = 7

const all = <T>(groups: Record<string, T | readonly T[] | Record<string, T>>): T[] =>
  Object.values(groups).flatMap((group) =>
    Array.isArray(group) ? group : isMessage(group) ? [group] : Object.values(group as object),
  ) as T[]

function isMessage(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('kind' in value || 'at' in value)
}

const clientFrames = all<ClientMessage>(CLIENT_MESSAGES as never).map((one) => encodeClientMessages([one, one]))
const serverFrames = all<ServerMessage>(SERVER_MESSAGES as never).map((one) => encodeServerMessages([one, one]))
const entries = Object.values(ENTRIES).map(encodeEntry)

const consensus: Message[] = [
  message({
    kind: 'append',
    from: 1,
    to: SELF,
    term: 3,
    index: 4,
    logTerm: 2,
    commit: 4,
    entries: [{ index: 5, term: 3, kind: 'normal', data: entries[0] as Uint8Array }] as never,
  }),
  message({ kind: 'heartbeat', from: 1, to: SELF, term: 3, commit: 4 }),
  message({ kind: 'vote', from: 1, to: SELF, term: 3, index: 4, logTerm: 2 }),
]
const memory = new AcknowledgedMemory()
for (const node of [1, SELF, 9]) memory.note(node, { index: 4, term: 2 })
const committed = { index: 4, term: 2, checksum: 7 }
const statement = { requestStart: 3, answeredStart: 5, committed, last: committed, evidence: committed, memory }
const peers = new PeerFrames(CLUSTER, 1)
const peerFrames = [
  ...consensus.map((one) => peers.encode('consensus', SELF, (writer) => writeMessage(writer, one))),
  peers.encode('stateHash', SELF, (writer) => {
    writer.varuint(4096)
    writer.string('0011223344556677')
  }),
  peers.encode('snapshotAck', SELF, (writer) => writer.varuint(1)),
  peers.encode('statement', SELF, (writer) => writeStatement(writer, statement)),
]

const logBody = (index: number) => ({
  hardState: { term: 3, vote: 1, commit: index },
  base: undefined,
  entries: entries.map((data, i) => ({ index: index + 1 + i, term: 3, kind: 'normal' as const, data })),
})
const logFrames = [1, 50].map((index) => encodeFrame(SEED, 1, logBody(index) as never).slice())
const state = LockState.create({ epoch: 1 } as never)
const states = [state.snapshot()].map((one) => Uint8Array.from(one as Uint8Array))

/** Half of the inputs get a checksum that fits, so that what is behind it is met too. */
function mended(random: SeededRandom, bytes: Uint8Array): Uint8Array {
  if (bytes.length < 5 || random.chance(0.5)) return bytes
  const copy = Uint8Array.from(bytes)
  new DataView(copy.buffer).setUint32(copy.length - 4, crc32(copy.subarray(0, -4)), true)
  return copy
}

const receiver = new PeerFrames(CLUSTER, SELF)

function peerFrame(random: SeededRandom): void {
  const frame = receiver.decode(mended(random, mutate(random, peerFrames)))
  if ('refused' in frame) return
  const { kind, from, body } = frame
  if (kind === 'consensus') readMessage(body, from, SELF)
  else if (kind === 'snapshotChunk') readChunk(body)
  else if (kind === 'snapshotAck') readChunkAck(body)
  else if (kind === 'statement') readStatement(body)
  else {
    body.varuint()
    body.string()
  }
}

function logFrame(random: SeededRandom): void {
  const segment = concat(mutate(random, logFrames), new Uint8Array(64))
  const found = frameAt(segment, SEED, 0)
  if (found.kind === 'valid') decodeBody(found.body)
  // The checksum keeps most of it out; what is behind must hold as well.
  const body = mutate(
    random,
    logFrames.map((frame) => frame.subarray(32)),
  )
  decodeBody(body)
}

function snapshot(random: SeededRandom): void {
  const name = 'snapshot-0000000000000007-0000000000000003'
  const bytes = mutate(random, states)
  const disk = { path: 'fuzz', read: () => bytes } as never
  if (random.chance(0.3)) readSnapshot(disk, name)
  else if (random.chance(0.5)) decodeMeta(bytes)
  else LockState.restore(bytes as never)
}

const framed = [encodeSender({ node: 3, address: '127.0.0.1:1' }), utf8.encode('{"repair":{"node":1}}')].map(
  (content, i) => concat(frameHead(i === 0 ? 3 : 1, content.length), content),
)

function peerStream(random: SeededRandom): void {
  // A stream would keep what it has put off until the end of the loop.
  const socket = Object.assign(new EventEmitter(), {
    destroyed: false,
    destroy() {
      socket.destroyed = true
    },
  })
  readFrames(
    socket as unknown as Socket,
    () => SERVER_FRAMES,
    (kind, content) => {
      if (kind === 3) decodeSender(content)
      else decodeRejoinRequest(content)
    },
  )
  socket.emit('data', Buffer.from(mutate(random, framed)))
}

const FIELDS = [
  'name',
  'locks',
  'mode',
  'permits',
  'ttl',
  'wait',
  'session',
  'request',
  'nonce',
  'client',
  'data',
  'lockDelay',
  'persistent',
  'portable',
  'hold',
  'reason',
  'actor',
  'value',
  'encoding',
  'ifVersion',
  'fence',
  'lock',
  'key',
  'prefix',
  'from',
  'limit',
  'cursor',
  'stale',
  'peer',
  '__proto__',
  'toString',
]

function httpBody(random: SeededRandom): void {
  const route = random.pick(ROUTES)
  const schema = random.pick([route.body, route.takes?.json, route.query].filter((one) => one !== undefined))
  check(schema, object(random, FIELDS), 'body')
}

const texts = [
  'leasehold-hold-1.5.7.00112233445566778899aabbccddeeff',
  'leasehold-session-1.5.00112233445566778899aabbccddeeff',
  '1.77.3',
  '281474976710657',
].map((text) => utf8.encode(text))

function text(random: SeededRandom): void {
  const input = new TextDecoder().decode(mutate(random, texts))
  const read = random.pick([parseHoldHandle, parseSessionHandle, parseCursor, parseToken] as ((
    text: string,
    epoch: number,
  ) => unknown)[])
  read(input, 1)
}

export const TARGETS: readonly Target[] = [
  { name: 'frames of clients', once: (random) => void decodeClientMessages(mutate(random, clientFrames)) },
  { name: 'frames of the service', once: (random) => void decodeServerMessages(mutate(random, serverFrames)) },
  { name: 'frames of members', once: peerFrame },
  { name: 'stream of members', once: peerStream },
  { name: 'log files', once: logFrame },
  { name: 'entries', once: (random) => void decodeEntry(mutate(random, entries)) },
  { name: 'snapshots', once: snapshot },
  { name: 'HTTP bodies and queries', once: httpBody },
  { name: 'handles, cursors, tokens', once: text },
]
