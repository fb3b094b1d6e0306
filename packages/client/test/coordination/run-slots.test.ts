import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addRun,
  hasRun,
  NAME_AGE_S,
  NAMES_MAX,
  normalizeSlot,
  parseSlots,
  removeRun,
  type Slots,
  TIMES_MAX,
} from '../../src/coordination/run-slots.js'

const EMPTY = parseSlots(undefined)
const REGISTER_BYTES = 65_536
const NOW_S = 1_700_000_000
const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'.split('')), minLength: 40, maxLength: 40 })
const time = fc.integer({ min: 0, max: 400 }).map((n) => new Date(Date.UTC(2026, 5, 1) + n * 60_000).toISOString())
const localDate = fc.integer({ min: 0, max: 400 }).map((n) => `${(n % 12) + 1}/${(n % 28) + 1}/20${20 + (n % 9)}`)
const slot = fc.oneof(fc.uuid(), hex, localDate, time, time, fc.string({ minLength: 1, maxLength: 60 }))

function claimed(slots: readonly string[], nowS = NOW_S): Slots {
  return slots.reduce<Slots>((all, one) => addRun(all, normalizeSlot(one), nowS) ?? all, EMPTY)
}

describe('run slots', () => {
  it('count as run only if they ran, or are times that as many later ones passed as are listed', () => {
    const property = fc.property(fc.array(slot, { maxLength: 300 }), slot, (given, asked) => {
      const ran = new Set<string>()
      let slots = EMPTY
      const hasPassed = (one: string) => [...ran].filter((other) => isTime(other) && other > one).length >= TIMES_MAX
      for (const one of [...given, asked].map(normalizeSlot)) {
        const skipped = hasRun(slots, one)
        if (ran.has(one)) expect(skipped).toBe(true)
        else if (skipped) expect(isTime(one) && hasPassed(one)).toBe(true)
        if (skipped) continue
        slots = addRun(slots, one, NOW_S) as Slots
        ran.add(one)
      }
      expect(parseSlots(JSON.parse(JSON.stringify(slots)))).toEqual(slots)
    })
    fc.assert(property, { numRuns: 60 })
  })

  it('fit into a register with as many times, and no name is forgotten within a day', () => {
    const long = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 90 })
    const property = fc.property(fc.array(long, { minLength: 200, maxLength: 600 }), (given) => {
      let slots = EMPTY
      for (const one of new Set(given.map(normalizeSlot))) {
        if (hasRun(slots, one)) continue
        const next = addRun(slots, one, NOW_S)
        if (!next) break
        expect(next.ran.slice(0, -1)).toEqual(slots.ran)
        slots = next
      }
      for (let n = 0; n < 2 * TIMES_MAX; n++) {
        slots = addRun(slots, new Date(Date.UTC(2026, 5, 1) + n * 60_000).toISOString(), NOW_S) as Slots
      }
      expect(new TextEncoder().encode(JSON.stringify(slots)).length).toBeLessThanOrEqual(REGISTER_BYTES)
    })
    fc.assert(property, { numRuns: 10 })
  })

  it('1 000 commit hashes are remembered; one more needs an oldest one of a day', () => {
    const hash = (n: number) => n.toString(16).padStart(40, '0')
    const slots = claimed(Array.from({ length: NAMES_MAX }, (_, n) => hash(n)))
    for (let n = 0; n < NAMES_MAX; n++) expect(hasRun(slots, hash(n))).toBe(true)
    expect(addRun(slots, hash(NAMES_MAX), NOW_S + NAME_AGE_S - 1)).toBeUndefined()
    const next = addRun(slots, hash(NAMES_MAX), NOW_S + NAME_AGE_S) as Slots
    expect([hasRun(next, hash(0)), hasRun(next, hash(1)), hasRun(next, hash(NAMES_MAX))]).toEqual([false, true, true])
  })

  it('spellings of one instant are one slot; everything else is a name', () => {
    for (const text of ['2026-11-29T03:00Z', '2026-11-29T03:00:00Z', '2026-11-29T03:00:00.0Z']) {
      expect(normalizeSlot(text)).toBe('2026-11-29T03:00:00.000Z')
    }
    const names = [
      '2026-11-29',
      '2026-11-29T03:00',
      '2026-11-29T03:00+01:00',
      '2026-02-30T03:00Z',
      '2026-11-29T24:00Z',
      'x',
    ]
    for (const text of names) expect(normalizeSlot(text)).toBe(text)
  })

  it('a freed slot can be claimed again', () => {
    const slots = removeRun(claimed(['a', 'b', 'c']), 'b')
    expect(slots).toEqual({ ran: ['a', 'c'], at: [NOW_S, NOW_S], forgotten: '' })
  })
})

function isTime(one: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(one)
}
