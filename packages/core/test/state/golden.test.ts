import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  type Acquire,
  type Command,
  decodeEntry,
  type Entry,
  encodeEntry,
  type Index,
  LockState,
  type LockRequest,
  type Millis,
} from '../../src/index.js'
import { hex } from './script.js'

/*
 * What members of one cluster must agree on, whatever version they run: the state after each entry of a fixed script, and
 * the bytes of the last snapshot. A change here is a change of behaviour or encoding, and needs a new feature level.
 * Level 1 is what members of the first releases know: its file never changes. UPDATE_GOLDEN=1 writes the file of level 2.
 */
const files = { 1: new URL('golden.json', import.meta.url), 2: new URL('golden-level-2.json', import.meta.url) }

const none = { lowest: 1, also: [] }
const data = Uint8Array.from({ length: 40 }, (_, i) => (i * 37) % 256)

function open(n: number, ttlMs: number, client = `client-${n}`): Command {
  return {
    kind: 'openSession',
    nonce: hex(n),
    secret: hex(n * 1001),
    ttlMs: ttlMs as Millis,
    client,
    local: n % 2 === 0,
  }
}

function acquire(session: number, request: number, locks: string, options: Partial<Acquire> = {}): Command {
  const requests = locks.split(' ').map((word): LockRequest => {
    const [name = '', mode = 'exclusive'] = word.split(':')
    return { name, mode: /^\d+$/.test(mode) ? { permits: Number(mode) } : (mode as 'shared') }
  })
  const rest = { waitMs: 0, lockDelayMs: 0 as Millis, persistent: false, portable: false, data: new Uint8Array(0) }
  return { kind: 'acquire', session: session as never, request, ack: none, locks: requests, ...rest, ...options }
}

function release(session: number, request: number, hold: number): Command {
  return { kind: 'release', session: session as never, request, ack: none, hold: hold as never }
}

function renew(session: number, more: object = {}): Command {
  return { kind: 'renew', session: session as never, ...more }
}

function steal(hold: number): Command {
  return { kind: 'steal', hold: hold as never, actor: 'ann@example', reason: 'stuck — see the log' }
}

function put(session: number, request: number, key: string, more: object = {}): Command {
  return { kind: 'put', session: session as never, request, ack: none, key, value: data, ...more }
}

const LASTING = { persistent: true, secret: hex(0xfeed) }
const PORTABLE = { portable: true, secret: hex(0xbeef) }
const FOREVER = { waitMs: -1 }
const version = (serial: number) => (9n << 48n) + BigInt(serial)

/** Milliseconds since the entry before, and its commands. Ids: sessions 1–4, then whatever the counter says. */
const SCRIPT: [number, ...Command[]][] = [
  [5000],
  [0, open(1, 10_000), open(2, 4000), open(3, 60_000), open(4, 1000, 'ґrüße, 鍵')],
  [1, acquire(1, 1, 'billing/invoice-42', { data })],
  [0, acquire(2, 1, 'billing/invoice-42', { waitMs: 3000 }), acquire(3, 1, 'billing/invoice-42:shared', FOREVER)],
  [0, acquire(4, 1, 'billing/invoice-42')],
  [10, acquire(4, 2, 'a:shared b:shared'), acquire(3, 2, 'b:shared c', { lockDelayMs: 700 as Millis })],
  [10, acquire(1, 2, 'a b c', FOREVER), acquire(2, 2, 'c:shared', FOREVER), acquire(3, 3, 'b')],
  [10, release(1, 3, 5)],
  [10, renew(2, { seen: 1, ack: { lowest: 2, also: [] } })],
  [0, acquire(1, 4, 'p:3'), acquire(1, 5, 'p:3', LASTING), acquire(3, 4, 'p:3', { lockDelayMs: 900 as Millis })],
  [0, acquire(2, 3, 'p:3', FOREVER), acquire(2, 4, 'p:2'), acquire(2, 5, 'p')],
  [5, renew(1, { ack: { lowest: 1, also: [5, 9] } })],
  [5, release(1, 6, 9)],
  [5, { kind: 'configure', permits: { name: 'p', size: 2 } }],
  [0, steal(11)],
  [940, renew(1), renew(2), renew(3)],
  [0, acquire(3, 5, 'x', PORTABLE), acquire(3, 6, 'y', LASTING), acquire(3, 7, 'z', { ...LASTING, ...PORTABLE, data })],
  [
    1,
    {
      kind: 'adopt',
      session: 1 as never,
      request: 7,
      ack: none,
      hold: 13 as never,
      secret: hex(0xbeef),
      newSecret: hex(7),
    },
  ],
  [
    1,
    {
      kind: 'adopt',
      session: 1 as never,
      request: 8,
      ack: none,
      hold: 13 as never,
      secret: hex(0xbeef),
      newSecret: hex(8),
    },
  ],
  [1, renew(3, { seen: 2, ack: { lowest: 1, also: [6] } })],
  [0, put(3, 8, 'config'), put(3, 9, 'config', { ifVersion: 0n }), put(1, 9, 'état/1', { ifVersion: 0n })],
  [0, put(1, 10, 'fenced', { ifVersion: 0n, fence: { hold: 16, lock: 'x' } })],
  [
    0,
    put(1, 11, 'fenced', { fence: { hold: 16, lock: 'x' } }),
    put(1, 12, 'fenced'),
    put(3, 10, 'fenced', { fence: { hold: 14, lock: 'y' } }),
  ],
  [7, { kind: 'delete', key: 'config', ifVersion: version(17) }],
  [0, { kind: 'cancel', session: 1 as never, request: 13, ack: none, target: 2 }],
  [0, { kind: 'cancel', session: 3 as never, request: 12, ack: none, target: 11 }, acquire(3, 11, 'late')],
  [0, acquire(1, 4, 'p:3'), acquire(1, 5, 'p:3'), acquire(1, 2, 'a b c', FOREVER)],
  [0, acquire(1, 700, 'far'), acquire(1, 5000, 'farther'), acquire(1, 14, 'a', { ack: { lowest: 12, also: [13] } })],
  [500, renew(1), renew(2, { seen: 99 })],
  [400, renew(1), renew(2, { seen: 1 }), renew(3, { seen: 1 })],
  [0, open(5, 300), open(5, 300), open(6, 300)],
  [
    0,
    acquire(21, 1, 'short', { lockDelayMs: 450 as Millis }),
    acquire(3, 13, 'short', FOREVER),
    acquire(22, 1, 'short', { waitMs: 200 }),
  ],
  [200],
  [100],
  [0, acquire(3, 14, 'short:shared'), acquire(3, 15, 'short:4')],
  [449],
  [1],
  [1, { kind: 'configure', limits: { holds: 9, waitersPerLock: 1, dataBytes: 39 } }],
  [
    0,
    acquire(3, 16, 'd', { data }),
    acquire(3, 17, 'short', FOREVER),
    acquire(1, 15, 'short', FOREVER),
    acquire(1, 16, 'full'),
  ],
  [0, { kind: 'configure', limits: { holds: 2_000_000, waitersPerLock: 20_000, dataBytes: 4096 } }],
  [0, { kind: 'closeSession', session: 2 as never, by: 'operator', reason: 'drain' }],
  [
    0,
    { kind: 'release', hold: 10 as never, secret: hex(0xfeed) },
    { kind: 'release', hold: 14 as never, secret: hex(1) },
  ],
  [
    3,
    acquire(3, 18, 'r:shared'),
    acquire(1, 17, 'r:shared'),
    acquire(1, 18, 'r', FOREVER),
    acquire(3, 19, 'r:shared', FOREVER),
  ],
  [3, release(3, 20, 26)],
  [3, { kind: 'release', session: 1 as never, hold: 27 as never }],
  [
    3,
    steal(99),
    release(3, 21, 99),
    renew(99),
    { kind: 'closeSession', session: 99 as never, by: 'owner', reason: '' },
  ],
  [
    0,
    acquire(3, 22, 'a a'),
    acquire(3, 23, 'q:0'),
    acquire(3, 24, ' '),
    acquire(3, 25, 'w', { lockDelayMs: 60_001 as Millis }),
  ],
  [0, put(3, 26, ''), { kind: 'delete', key: 'nothing' }, { kind: 'configure', level: 7 }],
  [0, acquire(3, 27, 'e', LASTING), acquire(3, 28, 'e f', FOREVER), acquire(1, 19, 'f', FOREVER)],
  [2, renew(3, { ack: { lowest: 28, also: [] } })],
  [5000, renew(1)],
  [4000, renew(1), renew(3)],
  [0, { kind: 'closeSession', session: 3 as never, by: 'owner', reason: '' }],
  [0, open(7, 5000), acquire(31, 1, 'm n:shared', { lockDelayMs: 60_000 as Millis, data })],
  [0, acquire(1, 20, 'm', { waitMs: 20_000, data }), acquire(1, 21, 'n', FOREVER), acquire(1, 22, 'n:shared', FOREVER)],
  [4000, renew(1)],
  [999, { kind: 'closeSession', session: 31 as never, by: 'death', reason: 'the process has gone' }],
  [1, renew(1), put(1, 23, 'last', { value: new Uint8Array(0) })],
  [3],
  [-50, renew(1, { seen: 3 })],
]

/** What level 2 adds: floors, in the middle of a life and beside other commands. */
const FLOORS: typeof SCRIPT = [
  [0, acquire(1, 24, 'below', LASTING), { kind: 'configure', floor: 11_776_000_000_000 as never }],
  [0, acquire(1, 25, 'above', FOREVER), acquire(1, 26, 'below', FOREVER), put(1, 27, 'after')],
  [0, { kind: 'configure', floor: 5 as never }, acquire(1, 28, 'again'), acquire(1, 29, 'p:3')],
]

interface Golden {
  readonly hashes: readonly string[]
  readonly snapshotBytes: number
  readonly snapshotSha256: string
  readonly raised: string
}

function play(level: 1 | 2): Golden & { readonly kinds: readonly string[] } {
  let state = LockState.create({ epoch: 9, level })
  const kinds = new Set<string>()
  let at = 0
  const script = level === 1 ? SCRIPT : [...SCRIPT, ...FLOORS]
  const hashes = script.map(([step, ...commands], i) => {
    at += step
    const entry: Entry = { at: at as Millis, commands }
    const { results } = state.apply(decodeEntry(encodeEntry(entry)), (i + 1) as Index)
    for (const result of results) kinds.add(result.kind === 'refused' ? result.code : result.kind)
    if (i % 10 === 9) state = LockState.restore(state.snapshot())
    return state.hash()
  })
  const snapshot = state.snapshot()
  return {
    hashes,
    snapshotBytes: snapshot.length,
    snapshotSha256: createHash('sha256').update(snapshot).digest('hex'),
    raised: state.withEpoch(10).state.hash(),
    kinds: [...kinds].sort(),
  }
}

describe.each([1, 2] as const)('a fixed script at feature level %d', (level) => {
  const file = files[level]
  const { kinds, ...played } = play(level)
  if (level === 2 && process.env.UPDATE_GOLDEN === '1') {
    writeFileSync(file, `${JSON.stringify(played, undefined, 2)}\n`)
  }
  const golden = JSON.parse(readFileSync(file, 'utf8')) as Golden

  it('gives the same state after each entry as ever', () => {
    const first = played.hashes.findIndex((hash, i) => hash !== golden.hashes[i])
    expect(first, 'the first entry with another state').toBe(-1)
    expect(played.hashes.length).toBe(golden.hashes.length)
  })

  it('gives the same snapshot, byte for byte, and the same state in a raised epoch', () => {
    expect(played.snapshotBytes).toBe(golden.snapshotBytes)
    expect(played.snapshotSha256).toBe(golden.snapshotSha256)
    expect(played.raised).toBe(golden.raised)
  })

  it('has something of everything', () => {
    const reached = [
      'aborted',
      'busy',
      'cancelled',
      'closed',
      'configured',
      'deleted',
      'ended',
      'expired-request',
      'granted',
    ]
    reached.push('invalid', 'limit', 'mismatch', 'not-holder', 'opened', 'put', 'queued', 'released', 'renewed')
    expect(kinds).toEqual([...reached, 'session-ended', 'stolen', 'version-conflict'].sort())
  })
})
