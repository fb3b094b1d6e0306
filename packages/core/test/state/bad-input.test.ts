import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Command,
  decodeEntry,
  ERRORS,
  encodeEntry,
  type Index,
  LockState,
  type Millis,
  queryState,
  type Result,
} from '../../src/index.js'
import { commandsByKind, wholeNumbers } from '../arbitraries.js'
import { hex } from './script.js'
import { Bench } from './support.js'

const SECRET = hex(0xabc)
/** Ids that exist in {@link furnished}, and some that do not. */
const serial = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 14 }) },
  { weight: 1, arbitrary: wholeNumbers(2 ** 48 - 1) },
)
const request = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 12 }) },
  { weight: 1, arbitrary: wholeNumbers() },
)
const name = fc.constantFrom('x', 'y', 'p', 'k')

/** Commands as any client could have sent them: decodable, with ids that are often real and numbers that seldom make sense. */
const command: fc.Arbitrary<Command> = fc
  .oneof(...Object.values<fc.Arbitrary<Command>>(commandsByKind))
  .chain((one) => {
    const changes: Record<string, fc.Arbitrary<unknown>> = {}
    if ('session' in one) changes.session = serial
    if ('request' in one) changes.request = request
    if ('hold' in one) changes.hold = serial
    if ('target' in one) changes.target = request
    if ('key' in one) changes.key = name
    if ('secret' in one && one.kind !== 'openSession') changes.secret = fc.constant(SECRET)
    if ('fence' in one && one.fence !== undefined)
      changes.fence = fc.record({ hold: serial, lock: name }, { noNullPrototype: true })
    if ('ack' in one && one.ack !== undefined) {
      const lowest = fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: request })
      changes.ack = fc.record({ lowest, also: fc.array(request, { maxLength: 2 }) }, { noNullPrototype: true })
    }
    if ('permits' in one && one.permits !== undefined)
      changes.permits = fc.record(
        { name, size: fc.oneof(fc.integer({ min: 0, max: 4 }), wholeNumbers()) },
        { noNullPrototype: true },
      )
    if ('locks' in one) {
      const mode = fc.oneof(
        fc.constantFrom('exclusive', 'shared'),
        fc.record({ permits: fc.constantFrom(0, 1, 2, 2 ** 31, 65_536) }, { noNullPrototype: true }),
      )
      changes.locks = fc.array(fc.record({ name, mode }, { noNullPrototype: true }), { maxLength: 3 })
    }
    return fc.record(changes).map((values) => ({ ...one, ...values }) as Command)
  })

/** A state with a bit of everything in it. */
function furnished(): Bench {
  const bench = new Bench()
  const [a, b] = [bench.open(), bench.open(5000)]
  bench.hold(a, ['x'], { lockDelayMs: 700 as Millis })
  bench.hold(b, [{ name: 'p', mode: { permits: 2 } }], { portable: true, secret: SECRET })
  const persistent = { persistent: true, secret: SECRET }
  bench.hold(b, [{ name: 'y', mode: 'shared' }], persistent)
  bench.acquire(b, ['x'], { waitMs: -1 })
  bench.acquire(a, ['y'], { waitMs: 3000 })
  bench.one({ kind: 'renew', session: b, ack: { lowest: 1, also: [2] } })
  bench.one({
    kind: 'put',
    session: a,
    request: bench.next(a),
    ack: { lowest: 1, also: [] },
    key: 'k',
    value: new Uint8Array([1]),
  })
  const { hold } = bench.hold(a, ['stolen'], { lockDelayMs: 900 as Millis })
  bench.one({ kind: 'steal', hold, actor: '', reason: '' })
  return bench
}
const FURNISHED = furnished().state.snapshot()

function checkWhole(state: LockState): void {
  const bytes = state.snapshot()
  const copy = LockState.restore(bytes)
  expect(copy.hash()).toBe(state.hash())
  expect(Buffer.compare(copy.snapshot(), bytes)).toBe(0)
}

function checkResult(result: Result | undefined): void {
  if (result === undefined) expect.fail('a command without a result')
  if (result.kind !== 'refused') return
  expect(Object.keys(ERRORS)).toContain(result.code)
  expect(result.message.length).toBeGreaterThan(0)
}

/** Everything that a query shows, and how far the counter is. */
function visible(state: LockState): unknown {
  const { counter, registers } = state.machine
  const { at: _, ...shown } = queryState(state, { limit: 1000 }, state.index)
  return {
    shown,
    counter,
    registers: [...registers.values()].map((one) => ({ ...one })),
    limits: state.limits,
    due: state.nextDeadline(),
  }
}

describe('any decodable entry', () => {
  it('is applied without a throw, answers every command, and leaves a state that can be written and read', () => {
    const entry = fc.record({
      step: fc.oneof(fc.constantFrom(0, 0, 1, 1000, 5000), wholeNumbers()),
      commands: fc.array(command, { maxLength: 5 }),
    })
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 8 }), (entries) => {
        const state = LockState.restore(FURNISHED)
        const twin = LockState.restore(FURNISHED)
        for (const { step, commands } of entries) {
          const at = Math.min(Number.MAX_SAFE_INTEGER, state.now + step) as Millis
          const index = (state.index + 1) as Index
          const decoded = decodeEntry(encodeEntry({ at, commands }))
          const applied = state.apply(decoded, index)
          expect(applied.results.length).toBe(commands.length)
          for (const result of applied.results) checkResult(result)
          twin.apply(decoded, index)
          expect(twin.hash()).toBe(state.hash())
        }
        checkWhole(state)
      }),
      { numRuns: Number(process.env.BAD_INPUT_RUNS ?? 200) },
    )
  })

  it('a refused command is never half done: nothing that can be seen has changed', () => {
    const refusals = new Map<string, number>()
    fc.assert(
      fc.property(command, (one) => {
        const quiet =
          'ack' in one && one.ack !== undefined ? ({ ...one, ack: { lowest: 1, also: [] } } as Command) : one
        const state = LockState.restore(FURNISHED)
        const untouched = LockState.restore(FURNISHED)
        const index = (state.index + 1) as Index
        const { results, pushes, events } = state.apply({ at: state.now, commands: [quiet] }, index)
        untouched.apply({ at: state.now, commands: [] }, index)
        const result = results[0] as Result
        if (result.kind !== 'refused') return
        const what = `${one.kind} ${result.code}`
        refusals.set(what, (refusals.get(what) ?? 0) + 1)
        expect(visible(state)).toEqual(visible(untouched))
        expect([...pushes, ...events]).toEqual([])
        if (['invalid', 'session-ended'].includes(result.code) && !remembered(state, quiet))
          expect(state.hash()).toBe(untouched.hash())
        checkWhole(state)
      }),
      { numRuns: Number(process.env.BAD_INPUT_RUNS ?? 500) },
    )
    expect(refusals.size).toBeGreaterThan(20)
  })
})

/** Whether the state keeps the answer, as it does for a number that makes sense. */
function remembered(state: LockState, one: Command): boolean {
  if (!('request' in one) || one.request === undefined || one.session === undefined) return false
  return state.machine.sessions.get(one.session)?.answers.has(one.request) ?? false
}

describe('wrong values that no codec lets through', () => {
  const bench = furnished()
  const session = 1 as never
  const numbered = { session, ack: { lowest: 1, also: [] } }
  const acquire = {
    kind: 'acquire',
    ...numbered,
    lockDelayMs: 0,
    waitMs: 0,
    persistent: false,
    portable: false,
    data: new Uint8Array(0),
  }
  const wrong: Record<string, unknown> = {
    'a request of 0': { ...acquire, request: 0, locks: [{ name: 'z', mode: 'exclusive' }] },
    'a request of 1.5': { ...acquire, request: 1.5, locks: [{ name: 'z', mode: 'exclusive' }] },
    'a wait of −2': { ...acquire, request: 20, waitMs: -2, locks: [{ name: 'z', mode: 'exclusive' }] },
    'a wait of NaN': { ...acquire, request: 21, waitMs: Number.NaN, locks: [{ name: 'z', mode: 'exclusive' }] },
    'a negative lock delay': { ...acquire, request: 22, lockDelayMs: -1, locks: [{ name: 'z', mode: 'exclusive' }] },
    'half a permit': { ...acquire, request: 23, locks: [{ name: 'z', mode: { permits: 0.5 } }] },
    'an empty name': { ...acquire, request: 24, locks: [{ name: '', mode: 'exclusive' }] },
    'a control character': { ...acquire, request: 25, locks: [{ name: 'a\u0000b', mode: 'exclusive' }] },
    'a lone surrogate': { ...acquire, request: 26, locks: [{ name: 'a\ud800', mode: 'exclusive' }] },
    'a name of 513 bytes': { ...acquire, request: 27, locks: [{ name: 'ü'.repeat(257), mode: 'exclusive' }] },
    'a persistent acquire without a secret': {
      ...acquire,
      request: 28,
      persistent: true,
      locks: [{ name: 'z', mode: 'exclusive' }],
    },
    'an acknowledgement of 0': {
      ...acquire,
      request: 29,
      ack: { lowest: 0, also: [] },
      locks: [{ name: 'z', mode: 'exclusive' }],
    },
    'an acknowledgement of −1': { kind: 'renew', session, ack: { lowest: 1, also: [-1] } },
    'a nonce that is no hex': {
      kind: 'openSession',
      nonce: 'x',
      secret: SECRET,
      ttlMs: 1000,
      client: '',
      local: false,
    },
    'a TTL of 1000.5': { kind: 'openSession', nonce: hex(99), secret: SECRET, ttlMs: 1000.5, client: '', local: false },
    'a client name with a lone surrogate': {
      kind: 'openSession',
      nonce: hex(99),
      secret: SECRET,
      ttlMs: 1000,
      client: '\udc00',
      local: false,
    },
    'a reason of 257 bytes': { kind: 'closeSession', session, by: 'operator', reason: 'r'.repeat(257) },
    'an actor of 257 bytes': { kind: 'steal', hold: 3, actor: 'r'.repeat(257), reason: '' },
    'a fraction as a limit': { kind: 'configure', limits: { sessions: 1.5 } },
    'a level of 1.5': { kind: 'configure', level: 1.5 },
  }
  for (const [what, one] of Object.entries(wrong)) {
    it(`${what} is invalid, and changes nothing`, () => {
      const before = visible(bench.state)
      expect(bench.one(one as Command)).toMatchObject({ kind: 'refused', code: 'invalid' })
      expect(visible(bench.state)).toEqual(before)
      checkWhole(bench.state)
    })
  }
})
