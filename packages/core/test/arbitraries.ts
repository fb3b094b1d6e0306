import fc from 'fast-check'
import type {
  Ack,
  Change,
  ClientMessage,
  Command,
  Cursor,
  DelayView,
  EndReason,
  Entry,
  ErrorCode,
  Event,
  Fence,
  Grant,
  HeldLock,
  HoldView,
  Index,
  LockRequest,
  Millis,
  Mode,
  Numbered,
  Push,
  Query,
  QueryResult,
  Refused,
  RegisterView,
  Result,
  Serial,
  ServerMessage,
  SessionView,
  WaiterView,
} from '../src/index.js'
import { COUNTER_MAX, EPOCH_MAX, ERRORS, LIMIT_FIELDS, nameProblem, WAIT_FOREVER } from '../src/index.js'

/** Plain objects only: those without a prototype are not what programs pass. */
const record = ((model: object, constraints: object = {}) =>
  fc.record(model as never, { ...constraints, noNullPrototype: true })) as typeof fc.record

/** Whole numbers up to `max`, with the edges of one, two, … bytes and small ones more often than by chance. */
export function wholeNumbers(max: number = Number.MAX_SAFE_INTEGER): fc.Arbitrary<number> {
  const edges: number[] = []
  for (let bits = 7; bits <= 53; bits++) edges.push(2 ** bits - 1, 2 ** bits)
  const within = edges.filter((edge) => edge <= max)
  return fc.oneof(
    fc.nat({ max: Math.min(max, 300) }),
    fc.constantFrom(max, ...within),
    fc.maxSafeNat().map((n) => n % (max + 1)),
  )
}

export const bytes = (maxLength = 40): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength })
export const hex128: fc.Arbitrary<string> = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((raw) => Array.from(raw, (byte) => byte.toString(16).padStart(2, '0')).join(''))
export const serial: fc.Arbitrary<Serial> = wholeNumbers(COUNTER_MAX).map((n) => n as Serial)
export const millis: fc.Arbitrary<Millis> = wholeNumbers().map((n) => n as Millis)
export const index: fc.Arbitrary<Index> = wholeNumbers().map((n) => n as Index)
export const version: fc.Arbitrary<bigint> = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  fc.constantFrom(0n, 1n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n - 1n),
)
export const correlation: fc.Arbitrary<number> = wholeNumbers(2 ** 32 - 1)

/** Any text without lone surrogates, also long, also empty. */
export const text: fc.Arbitrary<string> = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 150 }),
  fc.constantFrom('a'.repeat(127), 'a'.repeat(128), 'ä'.repeat(64), '\uFEFF', '\0', '\u{10FFFF}', '\uD7FF\uE000\uFFFF'),
)

/** What may name a lock or a register. */
export const name: fc.Arbitrary<string> = fc
  .oneof(
    fc.constantFrom('a', 'billing/invoice-42', 'account/1', 'гроші/рахунок', '鍵'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
  )
  .filter((value) => nameProblem(value) === undefined)

export const mode: fc.Arbitrary<Mode> = fc.oneof(
  fc.constantFrom<Mode>('exclusive', 'shared'),
  record({ permits: wholeNumbers(2 ** 32 - 1) }),
)
export const lockRequest: fc.Arbitrary<LockRequest> = record({ name, mode })
export const ack: fc.Arbitrary<Ack> = record({
  lowest: wholeNumbers(),
  also: fc.array(wholeNumbers(), { maxLength: 5 }),
})
export const fence: fc.Arbitrary<Fence> = record({ hold: serial, lock: name })
export const cursor: fc.Arbitrary<Cursor> = record({
  epoch: wholeNumbers(EPOCH_MAX),
  index,
  ordinal: wholeNumbers(),
})
export const endReason = fc.constantFrom<EndReason>(
  'released',
  'expired',
  'closed',
  'operator',
  'death',
  'stolen',
  'moved',
)
export const errorCode = fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[]))

const numbered: { [K in keyof Numbered]: fc.Arbitrary<Numbered[K]> } = { session: serial, request: wholeNumbers(), ack }
const kind = <K extends string>(value: K) => fc.constant(value)

export const commandsByKind: { [K in Command['kind']]: fc.Arbitrary<Extract<Command, { kind: K }>> } = {
  openSession: record({
    kind: kind('openSession'),
    nonce: hex128,
    secret: hex128,
    ttlMs: millis,
    client: text,
    local: fc.boolean(),
  }),
  renew: record(
    { kind: kind('renew'), session: serial, seen: wholeNumbers(), ack },
    { requiredKeys: ['kind', 'session'] },
  ),
  closeSession: record({
    kind: kind('closeSession'),
    session: serial,
    by: fc.constantFrom<'owner' | 'operator' | 'death'>('owner', 'operator', 'death'),
    reason: text,
  }),
  acquire: record(
    {
      kind: kind('acquire'),
      ...numbered,
      locks: fc.array(lockRequest, { maxLength: 4 }),
      waitMs: fc.oneof(fc.constant(WAIT_FOREVER), wholeNumbers()),
      lockDelayMs: millis,
      persistent: fc.boolean(),
      portable: fc.boolean(),
      secret: hex128,
      data: bytes(),
    },
    {
      requiredKeys: [
        'kind',
        'session',
        'request',
        'ack',
        'locks',
        'waitMs',
        'lockDelayMs',
        'persistent',
        'portable',
        'data',
      ],
    },
  ),
  cancel: record({ kind: kind('cancel'), ...numbered, target: wholeNumbers() }),
  release: record(
    { kind: kind('release'), ...numbered, hold: serial, secret: hex128 },
    { requiredKeys: ['kind', 'hold'] },
  ),
  adopt: record({ kind: kind('adopt'), ...numbered, hold: serial, secret: hex128, newSecret: hex128 }),
  steal: record({ kind: kind('steal'), hold: serial, actor: text, reason: text }),
  put: record(
    { kind: kind('put'), ...numbered, key: name, value: bytes(), ifVersion: version, fence },
    { requiredKeys: ['kind', 'key', 'value'] },
  ),
  delete: record(
    { kind: kind('delete'), ...numbered, key: name, ifVersion: version, fence },
    { requiredKeys: ['kind', 'key'] },
  ),
  configure: record(
    {
      kind: kind('configure'),
      limits: fc.dictionary(fc.constantFrom(...LIMIT_FIELDS), wholeNumbers(), { noNullPrototype: true }),
      level: wholeNumbers(),
      permits: record({ name, size: wholeNumbers() }),
      floor: serial,
    },
    { requiredKeys: ['kind'] },
  ),
}
export const command: fc.Arbitrary<Command> = fc.oneof(...Object.values<fc.Arbitrary<Command>>(commandsByKind))
export const entry: fc.Arbitrary<Entry> = record({ at: millis, commands: fc.array(command, { maxLength: 6 }) })

export const heldLock: fc.Arbitrary<HeldLock> = record(
  { name, mode, token: serial, slot: wholeNumbers() },
  { requiredKeys: ['name', 'mode', 'token'] },
)
export const grant: fc.Arbitrary<Grant> = record(
  { hold: serial, locks: fc.array(heldLock, { maxLength: 3 }), secret: hex128 },
  { requiredKeys: ['hold', 'locks'] },
)
export const refused: fc.Arbitrary<Refused> = record(
  { kind: kind('refused'), code: errorCode, message: text, hint: text, version },
  { requiredKeys: ['kind', 'code', 'message'] },
)

export const changesByKind: { [K in Change['kind']]: fc.Arbitrary<Extract<Change, { kind: K }>> } = {
  granted: record({ kind: kind('granted'), number: wholeNumbers(), request: wholeNumbers(), grant }),
  refused: record({ kind: kind('refused'), number: wholeNumbers(), request: wholeNumbers(), refused }),
  ended: record({ kind: kind('ended'), number: wholeNumbers(), hold: serial, reason: endReason, text }),
}
export const change: fc.Arbitrary<Change> = fc.oneof(...Object.values<fc.Arbitrary<Change>>(changesByKind))
export const push: fc.Arbitrary<Push> = record(
  { session: serial, change, ended: endReason },
  { requiredKeys: ['session'] },
)

export const resultsByKind: { [K in Result['kind']]: fc.Arbitrary<Extract<Result, { kind: K }>> } = {
  opened: record({ kind: kind('opened'), session: serial, secret: hex128, ttlMs: millis }),
  renewed: record({ kind: kind('renewed'), changes: fc.array(change, { maxLength: 4 }) }),
  closed: record({ kind: kind('closed') }),
  granted: record({ kind: kind('granted'), grant }),
  queued: record({ kind: kind('queued'), position: wholeNumbers() }),
  ended: record({ kind: kind('ended'), hold: serial, reason: endReason }),
  cancelled: record({
    kind: kind('cancelled'),
    was: fc.constantFrom<'queued' | 'granted' | 'ended' | 'unknown'>('queued', 'granted', 'ended', 'unknown'),
  }),
  released: record({ kind: kind('released') }),
  stolen: record({ kind: kind('stolen') }),
  put: record({ kind: kind('put'), version }),
  deleted: record({ kind: kind('deleted') }),
  configured: record({ kind: kind('configured') }),
  refused,
}
export const result: fc.Arbitrary<Result> = fc.oneof(...Object.values<fc.Arbitrary<Result>>(resultsByKind))

const wait = { session: serial, request: wholeNumbers(), names: fc.array(name, { maxLength: 3 }) }
export const eventsByKind: { [K in Event['kind']]: fc.Arbitrary<Extract<Event, { kind: K }>> } = {
  held: record({ kind: kind('held'), grant, session: serial, client: text }),
  freed: record({
    kind: kind('freed'),
    hold: serial,
    locks: fc.array(heldLock, { maxLength: 3 }),
    reason: endReason,
    actor: text,
    text,
  }),
  queued: record({ kind: kind('queued'), ...wait }),
  unqueued: record({
    kind: kind('unqueued'),
    ...wait,
    reason: fc.constantFrom<'timeout' | 'cancelled' | 'session-ended'>('timeout', 'cancelled', 'session-ended'),
  }),
  sessionOpened: record({ kind: kind('sessionOpened'), session: serial, client: text }),
  sessionEnded: record({ kind: kind('sessionEnded'), session: serial, reason: endReason }),
  put: record({ kind: kind('put'), key: name, version }),
  deleted: record({ kind: kind('deleted'), key: name, version }),
}
export const event: fc.Arbitrary<Event> = fc.oneof(...Object.values<fc.Arbitrary<Event>>(eventsByKind))

const orUndefined = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: undefined })
export const holdView: fc.Arbitrary<HoldView> = record({
  id: serial,
  locks: fc.array(heldLock, { maxLength: 3 }),
  session: orUndefined(serial),
  client: text,
  data: bytes(),
  persistent: fc.boolean(),
  ageMs: millis,
  remainingMs: orUndefined(millis),
})
export const waiterView: fc.Arbitrary<WaiterView> = record({
  session: serial,
  request: wholeNumbers(),
  client: text,
  locks: fc.array(lockRequest, { maxLength: 3 }),
  waitingMs: millis,
  remainingMs: orUndefined(millis),
})
export const sessionView: fc.Arbitrary<SessionView> = record({
  id: serial,
  client: text,
  ttlMs: millis,
  remainingMs: millis,
  holds: wholeNumbers(),
  waiters: wholeNumbers(),
})
export const delayView: fc.Arbitrary<DelayView> = record(
  { name, mode, slot: wholeNumbers(), remainingMs: millis },
  { requiredKeys: ['name', 'mode', 'remainingMs'] },
)
export const query: fc.Arbitrary<Query> = record(
  { prefix: text, name, limit: wholeNumbers(), cursor: text },
  { requiredKeys: [] },
)
export const queryResult: fc.Arbitrary<QueryResult> = record({
  held: fc.array(holdView, { maxLength: 3 }),
  pending: fc.array(waiterView, { maxLength: 3 }),
  delays: fc.array(delayView, { maxLength: 3 }),
  sessions: fc.array(sessionView, { maxLength: 3 }),
  next: orUndefined(text),
  at: cursor,
})
export const registerView: fc.Arbitrary<RegisterView> = record({
  key: name,
  value: bytes(),
  version,
  lock: orUndefined(name),
})

export const clientMessagesByKind: { [K in ClientMessage['kind']]: fc.Arbitrary<Extract<ClientMessage, { kind: K }>> } =
  {
    hello: record({
      kind: kind('hello'),
      version: wholeNumbers(),
      apiKey: text,
      client: text,
      epoch: wholeNumbers(EPOCH_MAX),
    }),
    attach: record({ kind: kind('attach'), correlation, session: serial, secret: hex128 }),
    command: record({ kind: kind('command'), correlation, command }),
    query: record({ kind: kind('query'), correlation, query, stale: fc.boolean() }),
    get: record({ kind: kind('get'), correlation, key: name, stale: fc.boolean() }),
    watch: record(
      { kind: kind('watch'), correlation, prefix: text, from: cursor },
      { requiredKeys: ['kind', 'correlation', 'prefix'] },
    ),
    unwatch: record({ kind: kind('unwatch'), correlation }),
    ping: record({ kind: kind('ping'), correlation }),
  }
export const clientMessage: fc.Arbitrary<ClientMessage> = fc.oneof(
  ...Object.values<fc.Arbitrary<ClientMessage>>(clientMessagesByKind),
)

export const serverMessagesByKind: { [K in ServerMessage['kind']]: fc.Arbitrary<Extract<ServerMessage, { kind: K }>> } =
  {
    welcome: record({
      kind: kind('welcome'),
      version: wholeNumbers(),
      cluster: text,
      epoch: wholeNumbers(EPOCH_MAX),
      member: text,
      leaderUrl: text,
      urls: fc.array(text, { maxLength: 3 }),
    }),
    result: record({ kind: kind('result'), correlation, result }),
    attached: record({ kind: kind('attached'), correlation }),
    queryAnswer: record({ kind: kind('queryAnswer'), correlation, answer: queryResult }),
    getAnswer: record({ kind: kind('getAnswer'), correlation, register: orUndefined(registerView) }),
    push: record({ kind: kind('push'), push }),
    events: record({
      kind: kind('events'),
      correlation,
      index,
      items: fc.array(record({ ordinal: wholeNumbers(), event }), { maxLength: 4 }),
    }),
    pong: record({ kind: kind('pong'), correlation }),
    error: record({ kind: kind('error'), correlation, refused, leaderUrl: text }),
  }
export const serverMessage: fc.Arbitrary<ServerMessage> = fc.oneof(
  ...Object.values<fc.Arbitrary<ServerMessage>>(serverMessagesByKind),
)
