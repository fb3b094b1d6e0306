import type { Cursor, Event, Index } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { EventHistory } from '../../src/driver/event-history.js'

describe('history', () => {
  const event: Event = { kind: 'put', key: 'k', version: 1n }
  const cursor = (index: number, ordinal: number, epoch = 1): Cursor => ({ epoch, index: index as Index, ordinal })
  const history = (events: number, bytes = 1e9) => new EventHistory(1, 10 as Index, { events, bytes })

  it('returns the events after a cursor, also within an entry', () => {
    const h = history(100)
    h.add(11 as Index, [event, event])
    h.add(13 as Index, [event])
    const at = (c: Cursor) => h.since(c)?.map((e) => [e.cursor.index, e.cursor.ordinal])
    expect(at(cursor(11, 0))).toEqual([
      [11, 1],
      [11, 2],
      [13, 1],
    ])
    expect(at(cursor(11, 1))).toEqual([
      [11, 2],
      [13, 1],
    ])
    expect(at(cursor(11, 2))).toEqual([[13, 1]])
    expect(at(cursor(13, 1))).toEqual([])
    expect(at(cursor(99, 0))).toEqual([])
    expect(at(cursor(10, 5))).toBeUndefined()
    expect(at(cursor(11, 0, 2))).toBeUndefined()
  })

  it('reports dropped events, and keeps its bounds', () => {
    const h = history(3)
    for (let i = 11; i < 5000; i++) h.add(i as Index, [event])
    expect(h.since(cursor(4996, 1))).toHaveLength(3)
    expect(h.since(cursor(4996, 0))).toBeUndefined()
    expect(h.since(cursor(100, 1))).toBeUndefined()
    const small = history(1000, 1000)
    for (let i = 11; i < 100; i++) small.add(i as Index, [event])
    expect(small.since(cursor(90, 1))).toBeUndefined()
    expect(small.since(cursor(97, 1))).toHaveLength(2)
  })
})
