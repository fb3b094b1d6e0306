import { describe, expect, test } from 'vitest'
import { tableLines } from '../src/table.js'
import { cut, fit, harmless, widthOf } from '../src/terminal-text.js'

describe('texts on a terminal', () => {
  test('replaces control characters in texts of other clients', () => {
    expect(harmless('a\x1b[2Jb\r\nc\u202ed\u009bx')).toBe('a�[2Jb��c�d�x')
    expect(tableLines(['NAME'], [['\x1b[1A\x1b[2Kfree']])).toEqual(['NAME', '�[1A�[2Kfree'])
  })

  test('counts width in columns: two for wide characters, none for marks', () => {
    expect([widthOf('abc'), widthOf('錠前'), widthOf('e\u0301'), widthOf('🔒')]).toEqual([3, 4, 1, 2])
    expect([cut('abcdef', 4), cut('錠前錠前', 6), cut('abc', 3), cut('abc', 0)]).toEqual(['abc…', '錠前…', 'abc', ''])
    expect([fit('錠', 4), fit('abcdef', 4)]).toEqual(['錠  ', 'abc…'])
  })
})

describe('a table', () => {
  const rows = [
    ['billing/invoice-42', 'leasehold acquire 4711', '281474976710666', '9.5s'],
    ['a', 'b', '7', '1m 02s'],
  ]
  const headings = ['LOCK', 'HOLDER', { title: 'TOKEN', whole: true as const }, 'LEFT']

  test('cuts nothing and leaves no trailing spaces without a width', () => {
    expect(tableLines(headings, rows)).toEqual([
      'LOCK                HOLDER                  TOKEN            LEFT',
      'billing/invoice-42  leasehold acquire 4711  281474976710666  9.5s',
      'a                   b                       7                1m 02s',
    ])
  })

  test.each([64, 60, 50, 40, 30, 10, 1])(
    'fits %d columns; what must be whole is, as long as there is any room',
    (width) => {
      const lines = tableLines(headings, rows, width)
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width)
      if (width >= 40) expect(lines[1]).toContain('  281474976710666  ')
    },
  )
})
