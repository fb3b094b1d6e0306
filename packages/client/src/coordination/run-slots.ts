import { isoTime, parseIsoTime } from '../platform.js'

/**
 * The slots of a `once` that have run. Two kinds:
 *
 * - *times*, ISO 8601 instants in UTC: ordered. The last {@link TIMES_MAX} are listed, and a time up to `forgotten` counts as
 *   run, because it ran or later ones passed it.
 * - *names*, everything else: without an order, so only a listed name has run. The last {@link NAMES_MAX} are listed.
 */
export interface Slots {
  /** In the order in which they were claimed. Times in the form of `toISOString`. */
  readonly ran: readonly string[]
  /** When each of `ran` was claimed, in seconds of the calendar clock. */
  readonly at: readonly number[]
  /** The greatest time that is no longer listed; empty: none. */
  readonly forgotten: string
}

/** Listed times. */
export const TIMES_MAX = 100
/** Listed names; fewer if they are long, see {@link NAMES_BYTES_MAX}. */
export const NAMES_MAX = 1_000
/** Bytes of the names as JSON: a register takes 65 536, and the times need up to 4 500 of them. */
export const NAMES_BYTES_MAX = 60_000
/** Two commas, and the seconds of a claim. */
const CLAIM_BYTES = 12
const ENCODER = new TextEncoder()

/** A name is remembered for at least this long. */
export const NAME_AGE_S = 24 * 3_600

/** Up to milliseconds, as far as `toISOString` goes. Seconds and fractions may be left out. */
const UTC_INSTANT = /^(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z$/

/** The one spelling of a slot: `'2026-11-29T03:00Z'` and the Date of that instant are the same slot. */
export function normalizeSlot(slot: string): string {
  const ms = timeOf(slot)
  return ms === undefined ? slot : isoTime(ms)
}

/** The slots in a register. Registers of earlier versions have no `at`, and may have forgotten names, which says nothing. */
export function parseSlots(value: unknown): Slots {
  const { ran = [], at = [], forgotten = '' } = (value ?? {}) as Partial<Slots>
  return {
    ran: ran.map(normalizeSlot),
    at: ran.map((_, i) => at[i] ?? 0),
    forgotten: timeOf(forgotten) === undefined ? '' : normalizeSlot(forgotten),
  }
}

export function hasRun(slots: Slots, slot: string): boolean {
  if (slots.ran.includes(slot)) return true
  const ms = timeOf(slot)
  const forgottenMs = timeOf(slots.forgotten)
  return ms !== undefined && forgottenMs !== undefined && ms <= forgottenMs
}

/**
 * Adds `slot`, and forgets the smallest times and the oldest names beyond the limits. Undefined: it would have to forget a name
 * that was claimed within {@link NAME_AGE_S}.
 */
export function addRun(slots: Slots, slot: string, nowS: number): Slots | undefined {
  const ran = [...slots.ran, slot]
  const at = [...slots.at, nowS]
  let { forgotten } = slots
  const drop = (index: number) => {
    ran.splice(index, 1)
    at.splice(index, 1)
  }
  for (let count = ran.filter(isTime).length; count > TIMES_MAX; count--) {
    const smallest = ran.filter(isTime).reduce((least, one) => (isBefore(one, least) ? one : least))
    drop(ran.indexOf(smallest))
    if (forgotten === '' || isBefore(forgotten, smallest)) forgotten = smallest
  }
  const names = ran.filter((one) => !isTime(one))
  let bytes = names.reduce((sum, name) => sum + bytesOf(name), 0)
  // Times do not depend on the room for names.
  while (!isTime(slot) && (names.length > NAMES_MAX || bytes > NAMES_BYTES_MAX)) {
    const name = names.shift() as string
    const oldest = ran.indexOf(name)
    // A claim in the future was made by a clock that was ahead.
    if (Math.abs(nowS - (at[oldest] as number)) < NAME_AGE_S) return undefined
    bytes -= bytesOf(name)
    drop(oldest)
  }
  return { ran, at, forgotten }
}

export function removeRun(slots: Slots, slot: string): Slots {
  const isKept = (_: unknown, i: number) => slots.ran[i] !== slot
  return { ...slots, ran: slots.ran.filter(isKept), at: slots.at.filter(isKept) }
}

/** Milliseconds of a slot that is a time. */
function timeOf(slot: string): number | undefined {
  if (!UTC_INSTANT.test(slot)) return undefined
  const ms = parseIsoTime(slot)
  // The 30th of February, and other spellings of the same instant, are names.
  if (!Number.isFinite(ms) || !isoTime(ms).startsWith(slot.slice(0, -1))) return undefined
  return ms
}

function isTime(slot: string): boolean {
  return timeOf(slot) !== undefined
}

function isBefore(a: string, b: string): boolean {
  return (timeOf(a) as number) < (timeOf(b) as number)
}

/** Bytes of a name and of the time of its claim in the register. */
function bytesOf(name: string): number {
  return ENCODER.encode(JSON.stringify(name)).length + CLAIM_BYTES
}
