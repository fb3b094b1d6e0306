import { describe, expect, test } from 'vitest'
import { backOffMs } from '../../src/model/back-off.js'
import { left, length, span, took } from '../../src/model/durations.js'
import { appended, eventText, grantsOf, type Seen } from '../../src/model/events.js'
import { SseParser } from '../../src/model/sse.js'

let number = 0
const seen = (kind: string, at: number, data: Seen['data']): Seen => ({ number: ++number, kind, cursor: '', at, data })
const lock = (name: string, token: string) => ({ name, mode: 'exclusive' as const, token })

describe('the grants of a lock', () => {
  test('begin and end as the events said, newest first', () => {
    const events = [
      seen('freed', 10, { hold: '1', locks: [lock('a', '1')], reason: 'expired', actor: '', text: '' }),
      seen('held', 11, { hold: '2', locks: [lock('a', '2')], client: 'ann' }),
      seen('held', 12, { hold: '3', locks: [lock('b', '3')], client: 'bob' }),
      seen('freed', 20, { hold: '2', locks: [lock('a', '2')], reason: 'stolen', actor: 'ops', text: 'stuck' }),
      seen('held', 21, { hold: '4', locks: [lock('a', '4')], client: '' }),
    ]
    expect(grantsOf('a', events)).toEqual([
      { hold: '4', token: '4', client: '', from: 21, to: undefined, end: undefined, by: '' },
      { hold: '2', token: '2', client: 'ann', from: 11, to: 20, end: 'stolen', by: 'ops: stuck' },
      { hold: '1', token: '1', client: '', from: undefined, to: 10, end: 'expired', by: '' },
    ])
    const before = [
      { hold: '0', token: '0', client: 'zoe', from: 1 },
      { hold: '2', token: '2', client: 'ann', from: 9 },
    ]
    expect(grantsOf('a', events, before).map((grant) => [grant.client, grant.from, grant.end])).toEqual([
      ['', 21, undefined],
      ['ann', 11, 'stolen'],
      ['', undefined, 'expired'],
      ['zoe', 1, undefined],
    ])
    expect(events.map(eventText)).toEqual([
      'expired',
      'held by ann with token 2',
      'held by bob with token 3',
      'stolen by ops: stuck',
      'held by session undefined with token 4',
    ])
  })

  test('only so many events are kept', () => {
    expect(appended([1, 2, 3], [4, 5], 3)).toEqual([3, 4, 5])
  })
})

test('a stream of events is read however it was cut', () => {
  const text =
    'retry: 1000\n: cluster\n\nevent: held\nid: 1.2.3\ndata: {"a": 1}\n\n: still here\n\nevent: gap\nid: 1.3.0\ndata: {}\n\n'
  const expected = [
    { kind: 'held', id: '1.2.3', data: '{"a": 1}' },
    { kind: 'gap', id: '1.3.0', data: '{}' },
  ]
  for (const size of [1, 2, 7, 1000]) {
    const parser = new SseParser()
    const pieces = text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
    expect(pieces.flatMap((piece) => parser.push(piece))).toEqual(expected)
  }
})

test('spans of time', () => {
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

test('the back-off doubles and is bounded', () => {
  expect([1, 2, 3, 4, 5, 6, 1_000].map(backOffMs)).toEqual([500, 1000, 2000, 4000, 5000, 5000, 5000])
})
