import { describe, expect, test } from 'vitest'
import { left, length, span, took } from '../../src/model/durations.js'

describe('durations', () => {
  test('are formatted with at most two units', () => {
    expect([0, 999, 59_999, 60_000, 3_599_000, 3_600_000, 90_000_000].map(span)).toEqual([
      '0 s',
      '0 s',
      '59 s',
      '1 m 00 s',
      '59 m 59 s',
      '1 h 00 m',
      '1 d 01 h',
    ])
    expect([-5, 0, 1, 1001].map(left)).toEqual(['0 s', '0 s', '1 s', '2 s'])
    expect([250, 1000, 1500, 90_000].map(length)).toEqual(['250 ms', '1 s', '1500 ms', '1 m 30 s'])
    expect([42, 9_940, 10_000].map(took)).toEqual(['0.0 s', '9.9 s', '10 s'])
  })
})
