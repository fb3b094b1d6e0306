import { describe, expect, it } from 'vitest'
import { type Cursor, EPOCH_MAX, formatCursor, type Index, InvalidError, parseCursor } from '../src/index.js'

describe('parseCursor', () => {
  it.each<Cursor>([
    { epoch: 0, index: 0 as Index, ordinal: 0 },
    { epoch: 1, index: 42 as Index, ordinal: 2 ** 32 - 1 },
    { epoch: EPOCH_MAX, index: (10 ** 15 - 1) as Index, ordinal: Number.MAX_SAFE_INTEGER },
  ])('reads what formatCursor writes: %o', (cursor) => {
    expect(parseCursor(formatCursor(cursor))).toEqual(cursor)
  })

  it.each([
    '',
    '1.2',
    '1.2.3.4',
    '1.-2.3',
    '1.2.x',
    `${EPOCH_MAX + 1}.1.0`,
    '1.1000000000000000.0',
    '1.1.9007199254740992',
  ])('rejects %j', (text) => {
    expect(() => parseCursor(text)).toThrow(InvalidError)
  })
})
