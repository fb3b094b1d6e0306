import { type Cursor, type Index, InvalidError } from '@leasehold/core'

/** A cursor as text: `epoch.index.ordinal`. */
export function formatCursor(cursor: Cursor): string {
  return `${cursor.epoch}.${cursor.index}.${cursor.ordinal}`
}

/** @throws InvalidError */
export function parseCursor(text: string): Cursor {
  const match = typeof text === 'string' ? /^(\d{1,5})\.(\d{1,15})\.(\d{1,16})$/.exec(text) : null
  if (!match) {
    throw new InvalidError('a cursor is the text of an event or of a query answer, such as 1.42.0')
  }
  return { epoch: Number(match[1]), index: Number(match[2]) as Index, ordinal: Number(match[3]) }
}
