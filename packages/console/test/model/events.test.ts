import { describe, expect, test } from 'vitest'
import { appendBounded, eventText, grantsOf, type SeenEvent } from '../../src/model/events.js'

let number = 0
const seen = (kind: string, at: number, data: SeenEvent['data']): SeenEvent => ({
  number: ++number,
  kind,
  cursor: '',
  at,
  data,
})
const lock = (name: string, token: string) => ({ name, mode: 'exclusive' as const, token })

describe('grantsOf', () => {
  test('lists the grants of a lock with their start and end, newest first', () => {
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
})

describe('appendBounded', () => {
  test('keeps only the newest elements', () => {
    expect(appendBounded([1, 2, 3], [4, 5], 3)).toEqual([3, 4, 5])
  })
})
