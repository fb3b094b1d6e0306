import { type Cursor, EPOCH_MAX, type Index, InvalidError } from '@leasehold/core'

/** Formats a cursor as `epoch.index.ordinal`, all decimal. This text is the id of a server-sent event. */
export function formatCursor(cursor: Cursor): string {
  return `${cursor.epoch}.${cursor.index}.${cursor.ordinal}`
}

/** @throws InvalidError */
export function parseCursor(text: string): Cursor {
  const match = /^([0-9]{1,5})\.([0-9]{1,15})\.([0-9]{1,16})$/.exec(text)
  const [epoch, index, ordinal] = match === null ? [] : match.slice(1).map(Number)
  if (epoch === undefined || index === undefined || ordinal === undefined || epoch > EPOCH_MAX) throw malformed(text)
  if (!Number.isSafeInteger(ordinal)) throw malformed(text)
  return { epoch, index: index as Index, ordinal }
}

function malformed(text: string): InvalidError {
  return new InvalidError(`not a cursor: ${JSON.stringify(text.slice(0, 60))}`, {
    hint: 'a cursor is the "at" of GET /v1/locks, or the id of an event',
  })
}
