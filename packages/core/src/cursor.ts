import type { Index } from './brand.js'
import { InvalidError } from './errors.js'
import type { Cursor } from './operations.js'
import { EPOCH_MAX } from './tokens.js'

const HINT = 'a cursor is the id of an event, or "at" of a query, such as 1.42.0'

/** Formats a cursor as text: `epoch.index.ordinal`, all decimal. It is also the id of a server-sent event. */
export function formatCursor(cursor: Cursor): string {
  return `${cursor.epoch}.${cursor.index}.${cursor.ordinal}`
}

/**
 * Reads what {@link formatCursor} wrote: an epoch up to 2^15 − 1, an index of at most 15 digits, and an ordinal up to
 * 2^53 − 1.
 * @throws InvalidError
 */
export function parseCursor(text: string): Cursor {
  const match = typeof text === 'string' ? /^([0-9]{1,5})\.([0-9]{1,15})\.([0-9]{1,16})$/.exec(text) : null
  if (match === null) throw notCursor(text)
  const [epoch, index, ordinal] = match.slice(1).map(Number) as [number, number, number]
  if (epoch > EPOCH_MAX || !Number.isSafeInteger(ordinal)) throw notCursor(text)
  return { epoch, index: index as Index, ordinal }
}

function notCursor(text: unknown): InvalidError {
  const shown = typeof text === 'string' ? JSON.stringify(text.slice(0, 60)) : typeof text
  return new InvalidError(`not a cursor: ${shown}`, { hint: HINT })
}
