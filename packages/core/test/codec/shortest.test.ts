import { describe, expect, it } from 'vitest'
import type { Change, Command, Event, HoldView, Index, Millis, Serial, WaiterView } from '../../src/index.js'
import {
  decodeEntry,
  decodeServerMessages,
  encodeEntry,
  encodeServerMessages,
  type ServerMessage,
} from '../../src/index.js'

// A list is refused when its count of shortest items cannot fit into what is left: the shortest items must pass.
const zero = 0 as Serial
const none = 0 as Millis
const alone = (message: ServerMessage) => decodeServerMessages(encodeServerMessages([message]))

describe('lists of the shortest items, at the end of the input', () => {
  it.each<Command>([
    { kind: 'configure' },
    { kind: 'renew', session: zero },
    { kind: 'delete', key: '' },
    { kind: 'release', hold: zero },
  ])('commands: $kind', (command) => {
    const entry = { at: none, commands: Array(200).fill(command) }
    expect(decodeEntry(encodeEntry(entry))).toEqual(entry)
  })

  it.each<Event>([
    { kind: 'sessionOpened', session: zero, client: '' },
    { kind: 'sessionEnded', session: zero, reason: 'closed' },
    { kind: 'queued', session: zero, request: 0, names: [] },
    { kind: 'held', grant: { hold: zero, locks: [] }, session: zero, client: '' },
    { kind: 'freed', hold: zero, locks: [], reason: 'released', actor: '', text: '' },
    { kind: 'put', key: '', version: 0n },
  ])('events: $kind', (event) => {
    const items = Array.from({ length: 200 }, () => ({ ordinal: 0, event }))
    const message: ServerMessage = { kind: 'events', correlation: 1, index: 0 as Index, items }
    expect(alone(message)).toEqual([message])
  })

  it.each<Change>([
    { kind: 'granted', number: 0, request: 0, grant: { hold: zero, locks: [] } },
    { kind: 'refused', number: 0, request: 0, refused: { kind: 'refused', code: 'busy', message: '' } },
    { kind: 'ended', number: 0, hold: zero, reason: 'closed', text: '' },
  ])('changes: $kind', (change) => {
    const message: ServerMessage = {
      kind: 'result',
      correlation: 1,
      result: { kind: 'renewed', changes: Array(200).fill(change) },
    }
    expect(alone(message)).toEqual([message])
  })

  it('locks', () => {
    const locks = Array(200).fill({ name: '', mode: 'exclusive', token: zero })
    const message: ServerMessage = {
      kind: 'result',
      correlation: 1,
      result: { kind: 'granted', grant: { hold: zero, locks } },
    }
    expect(alone(message)).toEqual([message])
  })

  it('views', () => {
    const held: HoldView = {
      id: zero,
      locks: [],
      session: undefined,
      client: '',
      data: new Uint8Array(0),
      persistent: false,
      ageMs: none,
      remainingMs: undefined,
    }
    const pending: WaiterView = {
      session: zero,
      request: 0,
      client: '',
      locks: [],
      waitingMs: none,
      remainingMs: undefined,
    }
    const session = { id: zero, client: '', ttlMs: none, remainingMs: none, holds: 0, waiters: 0 }
    const delay = { name: '', mode: 'exclusive', remainingMs: none } as const
    const at = { epoch: 0, index: 0 as Index, ordinal: 0 }
    const empty = { held: [], pending: [], delays: [], sessions: [], next: undefined, at }
    // After the last list only five bytes follow: 200 items that are each counted one byte too long do not fit.
    for (const answer of [
      { ...empty, held: Array(200).fill(held) },
      { ...empty, pending: Array(200).fill(pending) },
      { ...empty, delays: Array(200).fill(delay) },
      { ...empty, sessions: Array(200).fill(session) },
    ]) {
      const message: ServerMessage = { kind: 'queryAnswer', correlation: 1, answer }
      expect(alone(message)).toEqual([message])
    }
  })
})
