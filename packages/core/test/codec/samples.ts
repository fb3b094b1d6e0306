import type {
  Change,
  ClientMessage,
  Command,
  Entry,
  Event,
  Grant,
  HeldLock,
  Index,
  Millis,
  Push,
  QueryResult,
  Refused,
  Result,
  Serial,
  ServerMessage,
} from '../../src/index.js'

const serial = (value: number) => value as Serial
const ms = (value: number) => value as Millis
const SECRET = '000102030405060708090a0b0c0d0eff'
const OTHER_SECRET = 'f0e0d0c0b0a090807060504030201000'
const ack = { lowest: 6, also: [8, 300] }
const numbered = { session: serial(1000), request: 7, ack }

const alone: HeldLock = { name: 'billing/invoice-42', mode: 'exclusive', token: serial(70_000) }
const grant: Grant = { hold: serial(1234), locks: [alone] }
const rich: Grant = {
  hold: serial(2 ** 48 - 1),
  locks: [
    { name: 'gpu', mode: { permits: 4 }, token: serial(9), slot: 3 },
    { name: 'ключ', mode: 'shared', token: serial(10) },
  ],
  secret: SECRET,
}
const refused: Refused = { kind: 'refused', code: 'busy', message: 'held by host-1' }

type ByKind<T extends { kind: string }> = { [K in T['kind']]: readonly Extract<T, { kind: K }>[] }

/** At least one command of every kind; the first is the plainest, the others have everything. */
export const COMMANDS: ByKind<Command> = {
  openSession: [
    { kind: 'openSession', nonce: SECRET, secret: OTHER_SECRET, ttlMs: ms(10_000), client: 'host-1', local: false },
    { kind: 'openSession', nonce: OTHER_SECRET, secret: SECRET, ttlMs: ms(86_400_000), client: '', local: true },
  ],
  renew: [
    { kind: 'renew', session: serial(1000) },
    { kind: 'renew', session: serial(1000), seen: 5, ack },
  ],
  closeSession: [
    { kind: 'closeSession', session: serial(1000), by: 'owner', reason: '' },
    { kind: 'closeSession', session: serial(1000), by: 'operator', reason: 'host is gone' },
    { kind: 'closeSession', session: serial(1000), by: 'death', reason: 'pid 7' },
  ],
  acquire: [
    {
      kind: 'acquire',
      session: serial(1000),
      request: 7,
      ack: { lowest: 7, also: [] },
      locks: [{ name: 'billing/invoice-42', mode: 'exclusive' }],
      waitMs: 30_000,
      lockDelayMs: ms(0),
      persistent: false,
      portable: false,
      data: new Uint8Array(0),
    },
    {
      kind: 'acquire',
      ...numbered,
      locks: [
        { name: 'a', mode: 'shared' },
        { name: 'gpu', mode: { permits: 4 } },
      ],
      waitMs: -1,
      lockDelayMs: ms(15_000),
      persistent: true,
      portable: true,
      secret: SECRET,
      data: Uint8Array.of(1, 2, 3),
    },
  ],
  cancel: [{ kind: 'cancel', ...numbered, target: 6 }],
  release: [
    { kind: 'release', hold: serial(1234) },
    { kind: 'release', ...numbered, hold: serial(1234) },
    { kind: 'release', hold: serial(1234), secret: SECRET },
  ],
  adopt: [{ kind: 'adopt', ...numbered, hold: serial(1234), secret: SECRET, newSecret: OTHER_SECRET }],
  steal: [{ kind: 'steal', hold: serial(1234), actor: 'ops', reason: 'stuck' }],
  put: [
    { kind: 'put', key: 'config/flags', value: Uint8Array.of(123, 125) },
    {
      kind: 'put',
      ...numbered,
      key: 'config/flags',
      value: new Uint8Array(0),
      ifVersion: 0n,
      fence: { hold: serial(1234), lock: 'config' },
    },
  ],
  delete: [
    { kind: 'delete', key: 'config/flags' },
    {
      kind: 'delete',
      ...numbered,
      key: 'config/flags',
      ifVersion: 2n ** 63n - 1n,
      fence: { hold: serial(1234), lock: 'config' },
    },
  ],
  configure: [
    { kind: 'configure' },
    { kind: 'configure', limits: { sessions: 5, lockDelayMaxMs: 60_000 }, level: 2, permits: { name: 'gpu', size: 8 } },
    {
      kind: 'configure',
      limits: {
        sessions: 1,
        holds: 2,
        holdsPerSession: 3,
        waitersPerLock: 4,
        locksPerAcquire: 5,
        dataBytes: 6,
        registers: 7,
        registerBytes: 8,
        ttlMinMs: 9,
        ttlMaxMs: 10,
        lockDelayMaxMs: 11,
      },
    },
  ],
}

export const ENTRIES: Record<string, Entry> = {
  tick: { at: ms(1_000_000), commands: [] },
  batch: { at: ms(1_000_001), commands: [COMMANDS.renew[0] as Command, COMMANDS.release[0] as Command] },
}

export const CHANGES: ByKind<Change> = {
  granted: [{ kind: 'granted', number: 1, request: 7, grant }],
  refused: [{ kind: 'refused', number: 2, request: 8, refused }],
  ended: [{ kind: 'ended', number: 3, hold: serial(1234), reason: 'stolen', text: 'by ops: stuck' }],
}

export const RESULTS: ByKind<Result> = {
  opened: [{ kind: 'opened', session: serial(1000), secret: SECRET, ttlMs: ms(10_000) }],
  renewed: [
    { kind: 'renewed', changes: [] },
    { kind: 'renewed', changes: Object.values(CHANGES).flat() },
  ],
  closed: [{ kind: 'closed' }],
  granted: [
    { kind: 'granted', grant },
    { kind: 'granted', grant: rich },
  ],
  queued: [{ kind: 'queued', position: 3 }],
  ended: [
    { kind: 'ended', hold: serial(1234), reason: 'released' },
    { kind: 'ended', hold: serial(1234), reason: 'moved' },
  ],
  cancelled: [
    { kind: 'cancelled', was: 'queued' },
    { kind: 'cancelled', was: 'unknown' },
  ],
  released: [{ kind: 'released' }],
  stolen: [{ kind: 'stolen' }],
  put: [{ kind: 'put', version: (3n << 48n) | 77n }],
  deleted: [{ kind: 'deleted' }],
  configured: [{ kind: 'configured' }],
  refused: [
    refused,
    { kind: 'refused', code: 'version-conflict', message: 'other version', hint: 'read again', version: 5n },
  ],
}

export const PUSHES: Record<string, Push> = {
  granted: { session: serial(1000), change: CHANGES.granted[0] as Change },
  'hold ended': { session: serial(1000), change: CHANGES.ended[0] as Change },
  'session ended': { session: serial(1000), ended: 'expired' },
}

export const EVENTS: ByKind<Event> = {
  held: [{ kind: 'held', grant, session: serial(1000), client: 'host-1' }],
  freed: [{ kind: 'freed', hold: serial(1234), locks: [alone], reason: 'operator', actor: 'ops', text: 'stuck' }],
  queued: [{ kind: 'queued', session: serial(1000), request: 7, names: ['a', 'b'] }],
  unqueued: [
    { kind: 'unqueued', session: serial(1000), request: 7, names: ['a', 'b'], reason: 'timeout' },
    { kind: 'unqueued', session: serial(1000), request: 7, names: ['a'], reason: 'session-ended' },
  ],
  sessionOpened: [{ kind: 'sessionOpened', session: serial(1000), client: 'host-1' }],
  sessionEnded: [{ kind: 'sessionEnded', session: serial(1000), reason: 'death' }],
  put: [{ kind: 'put', key: 'config/flags', version: 9n }],
  deleted: [{ kind: 'deleted', key: 'config/flags', version: 10n }],
}

const answer: QueryResult = {
  held: [
    {
      id: serial(1234),
      locks: [alone],
      session: serial(1000),
      client: 'host-1',
      data: Uint8Array.of(1),
      persistent: false,
      ageMs: ms(500),
      remainingMs: ms(9500),
    },
    {
      id: serial(1235),
      locks: rich.locks,
      session: undefined,
      client: '',
      data: new Uint8Array(0),
      persistent: true,
      ageMs: ms(1),
      remainingMs: undefined,
    },
  ],
  pending: [
    {
      session: serial(1000),
      request: 9,
      client: 'host-1',
      locks: [{ name: 'a', mode: 'shared' }],
      waitingMs: ms(20),
      remainingMs: ms(980),
    },
    { session: serial(1000), request: 10, client: '', locks: [], waitingMs: ms(0), remainingMs: undefined },
  ],
  delays: [
    { name: 'a', mode: 'exclusive', remainingMs: ms(15_000) },
    { name: 'gpu', mode: { permits: 4 }, slot: 2, remainingMs: ms(1) },
  ],
  sessions: [{ id: serial(1000), client: 'host-1', ttlMs: ms(10_000), remainingMs: ms(9500), holds: 1, waiters: 2 }],
  next: 'page-2',
  at: { epoch: 3, index: 4096 as Index, ordinal: 2 },
}

export const CLIENT_MESSAGES: ByKind<ClientMessage> = {
  hello: [{ kind: 'hello', version: 1, apiKey: 'lh_key', client: 'host-1', epoch: 3 }],
  attach: [{ kind: 'attach', correlation: 1, session: serial(1000), secret: SECRET }],
  command: [{ kind: 'command', correlation: 0x01020304, command: COMMANDS.acquire[0] as Command }],
  query: [
    { kind: 'query', correlation: 2, query: {}, stale: false },
    { kind: 'query', correlation: 2, query: { prefix: 'a', name: 'b', limit: 10, cursor: 'c' }, stale: true },
  ],
  get: [{ kind: 'get', correlation: 3, key: 'config/flags', stale: true }],
  watch: [
    { kind: 'watch', correlation: 4, prefix: '' },
    { kind: 'watch', correlation: 4, prefix: 'billing/', from: { epoch: 3, index: 4096 as Index, ordinal: 2 } },
  ],
  unwatch: [{ kind: 'unwatch', correlation: 4 }],
  ping: [{ kind: 'ping', correlation: 2 ** 32 - 1 }],
}

export const SERVER_MESSAGES: ByKind<ServerMessage> = {
  welcome: [
    {
      kind: 'welcome',
      version: 1,
      cluster: 'c0ffee',
      epoch: 3,
      member: 'n1',
      leaderUrl: 'http://n2:4100',
      urls: ['http://n1:4100', 'http://n2:4100'],
    },
  ],
  result: [{ kind: 'result', correlation: 5, result: RESULTS.granted[0] as Result }],
  attached: [{ kind: 'attached', correlation: 1 }],
  queryAnswer: [
    { kind: 'queryAnswer', correlation: 2, answer },
    {
      kind: 'queryAnswer',
      correlation: 2,
      answer: { held: [], pending: [], delays: [], sessions: [], next: undefined, at: answer.at },
    },
  ],
  getAnswer: [
    { kind: 'getAnswer', correlation: 3, register: undefined },
    {
      kind: 'getAnswer',
      correlation: 3,
      register: { key: 'config/flags', value: Uint8Array.of(123, 125), version: 9n, lock: 'config' },
    },
    {
      kind: 'getAnswer',
      correlation: 3,
      register: { key: 'config/flags', value: new Uint8Array(0), version: 9n, lock: undefined },
    },
  ],
  push: [{ kind: 'push', push: PUSHES.granted as Push }],
  events: [
    {
      kind: 'events',
      correlation: 4,
      index: 4096 as Index,
      items: [
        { ordinal: 0, event: EVENTS.sessionEnded[0] as Event },
        { ordinal: 3, event: EVENTS.deleted[0] as Event },
      ],
    },
  ],
  pong: [{ kind: 'pong', correlation: 2 ** 32 - 1 }],
  error: [{ kind: 'error', correlation: 0, refused, leaderUrl: 'http://n2:4100' }],
}
