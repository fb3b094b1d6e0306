import { expect, it } from 'vitest'
import {
  covers,
  type Event,
  type HeldLock,
  redactEvent,
  redactQuery,
  type QueryResult,
  matchesPrefix,
} from '../src/index.js'

const lock = (name: string): HeldLock => ({ name, mode: 'exclusive', token: 1 as never })
const held = (...names: string[]): Event => ({
  kind: 'held',
  grant: { hold: 1 as never, locks: names.map(lock) },
  session: 1 as never,
  client: '',
})
const freed = (...names: string[]): Event => {
  return { kind: 'freed', hold: 1 as never, locks: names.map(lock), reason: 'released', actor: '', text: '' }
}
const queued = (...names: string[]): Event => ({ kind: 'queued', session: 1 as never, request: 1, names })
const opened: Event = { kind: 'sessionOpened', session: 1 as never, client: '' }
const ofA = (name: string) => covers('a', name)

it('a prefix covers whole segments of locks and registers', () => {
  for (const name of ['a', 'a/b', 'ab', 'b']) {
    for (const event of [held, freed, queued]) expect(matchesPrefix('a', event(name))).toBe(covers('a', name))
    expect(matchesPrefix('a', { kind: 'deleted', key: name, version: 1n })).toBe(covers('a', name))
  }
  expect(matchesPrefix('a', held('b', 'a/c'))).toBe(true)
  expect([matchesPrefix('', opened), matchesPrefix('a', opened)]).toEqual([true, false])
})

it('an event of several locks keeps the names that may be read', () => {
  for (const event of [held, freed, queued]) {
    expect(redactEvent(event('b', 'a/c', 'd', 'a'), ofA)).toEqual(event('a/c', 'a'))
    expect(redactEvent(event('a'), ofA)).toEqual(event('a'))
  }
  expect(redactEvent(opened, ofA)).toEqual(opened)
})

it('so does a query, and rows of which nothing may be read are left out', () => {
  const hold = (...names: string[]) => ({ locks: names.map(lock) }) as unknown as QueryResult['held'][number]
  const waiter = (...names: string[]) => ({ locks: names.map(lock) }) as unknown as QueryResult['pending'][number]
  const rest = { delays: [], sessions: [], next: undefined, at: { epoch: 1, index: 1 as never, ordinal: 1 } }
  const all = { ...rest, held: [hold('a', 'b'), hold('b')], pending: [waiter('b', 'a/c')] }
  expect(redactQuery(all, ofA)).toEqual({ ...rest, held: [hold('a')], pending: [waiter('a/c')] })
  expect(redactQuery(all, () => true)).toEqual(all)
})
