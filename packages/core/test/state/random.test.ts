import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  FLOOR_MAX,
  type Command,
  decodeEntry,
  type Entry,
  encodeEntry,
  type Index,
  LockState,
  type Millis,
  type Mode,
} from '../../src/index.js'
import { checkPushes, InvariantChecker } from './invariants.js'

/** Commands over few sessions, few names and small numbers, so that they meet. Ids are guesses: 1 … 40. */
const hex = fc.integer({ min: 1, max: 6 }).map((n) => n.toString(16).padStart(32, '0'))
const serial = fc.integer({ min: 1, max: 40 }) as fc.Arbitrary<never>
const session = fc.integer({ min: 1, max: 4 }) as fc.Arbitrary<never>
const request = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 500, max: 1100 }))
const ack = fc.record({
  lowest: fc.integer({ min: 1, max: 6 }),
  also: fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 3 }),
})
const mode = fc.constantFrom<Mode>('exclusive', 'exclusive', 'shared', 'shared')
const locks = fc.oneof(
  fc.uniqueArray(fc.record({ name: fc.constantFrom('x', 'y'), mode }), {
    minLength: 1,
    maxLength: 2,
    selector: (one) => one.name,
  }),
  fc.constant([{ name: 'p', mode: { permits: 2 } as Mode }]),
  fc.constant([
    { name: 'x', mode: 'exclusive' as Mode },
    { name: 'p', mode: { permits: 2 } as Mode },
  ]),
)
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('openSession' as const),
      nonce: hex,
      secret: hex,
      ttlMs: fc.constantFrom(100, 300, 5000) as fc.Arbitrary<never>,
      client: fc.constant('c'),
      local: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record(
      { kind: fc.constant('renew' as const), session, seen: fc.integer({ min: 0, max: 5 }), ack },
      { requiredKeys: ['kind', 'session'] },
    ),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('acquire' as const),
      session,
      request,
      ack,
      locks,
      waitMs: fc.constantFrom(0, 100, 250, -1, -1),
      lockDelayMs: fc.constantFrom(0, 0, 50, 100) as fc.Arbitrary<never>,
      persistent: fc.boolean(),
      portable: fc.boolean(),
      secret: fc.constant('ab'.repeat(16)),
      data: fc.constant(new Uint8Array([1])),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record(
      {
        kind: fc.constant('release' as const),
        hold: serial,
        session,
        request,
        ack,
        secret: fc.constant('ab'.repeat(16)),
      },
      { requiredKeys: ['kind', 'hold', 'session'] },
    ),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), session, request, ack, target: request }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('adopt' as const),
      session,
      request,
      ack,
      hold: serial,
      secret: fc.constant('ab'.repeat(16)),
      newSecret: fc.constant('ab'.repeat(16)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('steal' as const),
      hold: serial,
      actor: fc.constant('op'),
      reason: fc.constant(''),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('closeSession' as const),
      session,
      by: fc.constantFrom('owner' as const, 'operator' as const, 'death' as const),
      reason: fc.constant(''),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record(
      {
        kind: fc.constant('put' as const),
        key: fc.constantFrom('k', 'l'),
        value: fc.constant(new Uint8Array([7])),
        ifVersion: fc.oneof(
          fc.constant(0n),
          fc.integer({ min: 1, max: 40 }).map((n) => (1n << 48n) + BigInt(n)),
        ),
        fence: fc.record({ hold: serial, lock: fc.constant('x') }),
        session,
        request,
        ack,
      },
      { requiredKeys: ['kind', 'key', 'value', 'session', 'request', 'ack'] },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('delete' as const),
      key: fc.constantFrom('k', 'l'),
      session,
      request,
      ack,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('configure' as const),
      permits: fc.record({ name: fc.constant('p'), size: fc.integer({ min: 1, max: 3 }) }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('configure' as const),
      floor: fc.constantFrom(0, 7, 2 ** 31 + 1, 11_776_000_000_000, FLOOR_MAX),
    }),
  },
) as fc.Arbitrary<Command>

const entries = fc.array(
  fc.record({ step: fc.constantFrom(0, 0, 1, 50, 100, 200), commands: fc.array(command, { maxLength: 4 }) }),
  { minLength: 5, maxLength: 60 },
)

describe('random entries', () => {
  it('keep the invariants, and a second replica and a restored one agree at every index', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(entries, fc.integer({ min: 0, max: 59 }), (script, restoreAt) => {
        const first = LockState.create({ epoch: 1 })
        let second = LockState.create({ epoch: 1 })
        const checker = new InvariantChecker()
        let at = 1
        let open: Command[] = [1, 2, 3].map((n) => {
          const id = `f${n}`.padStart(32, '0')
          return { kind: 'openSession', nonce: id, secret: id, ttlMs: 5000 as Millis, client: 'c', local: false }
        })
        script.forEach(({ step, commands }, i) => {
          at += step
          const entry: Entry = { at: at as Millis, commands: [...open, ...commands] }
          open = []
          const index = (i + 1) as Index
          const applied = first.apply(entry, index)
          const again = second.apply(decodeEntry(encodeEntry(entry)), index)
          expect(again).toEqual(applied)
          expect(second.hash()).toBe(first.hash())
          expect(applied.results.length).toBe(entry.commands.length)
          checker.check(first, applied.events)
          checkPushes(first, applied.pushes)
          if (i === restoreAt) second = LockState.restore(first.snapshot())
        })
      }),
      { numRuns: Number(process.env.RANDOM_RUNS ?? 120) },
    )
  })
})
