import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  CHANGE_KINDS,
  CLIENT_MESSAGE_KINDS,
  COMMAND_KINDS,
  EVENT_KINDS,
  LIMIT_FIELDS,
  LIMIT_NAMES,
  RESULT_KINDS,
  SERVER_MESSAGE_KINDS,
} from '../../src/index.js'
import { CODECS, type Codec, decode, encode } from './codecs.js'
import { CHANGES, CLIENT_MESSAGES, COMMANDS, ENTRIES, EVENTS, PUSHES, RESULTS, SERVER_MESSAGES } from './samples.js'

// What the disks and the clients in the field know. A line here changes only together with the feature level or the
// stream version: files that exist must stay readable.
const golden = JSON.parse(readFileSync(new URL('golden.json', import.meta.url), 'utf8')) as Record<string, string>

function named(name: string): Codec<unknown> {
  const codec = CODECS.find((one) => one.name === name)
  if (codec === undefined) throw new RangeError(`no codec ${name}`)
  return codec
}

function rows(type: string, samples: Record<string, unknown>): [string, Codec<unknown>, unknown][] {
  return Object.entries(samples).flatMap(([kind, values]) =>
    (Array.isArray(values) ? values : [values]).map((value, i): [string, Codec<unknown>, unknown] => [
      `${type} ${kind} ${i + 1}`,
      named(type),
      value,
    ]),
  )
}

const ROWS = [
  ...rows('command', COMMANDS),
  ...rows('entry', ENTRIES),
  ...rows('change', CHANGES),
  ...rows('result', RESULTS),
  ...rows('push', PUSHES),
  ...rows('event', EVENTS),
  ...rows('client message', CLIENT_MESSAGES),
  ...rows('server message', SERVER_MESSAGES),
]

describe('the bytes of every kind never change', () => {
  it.each(ROWS)('%s', (name, codec, value) => {
    const bytes = encode(codec, value)
    expect(Buffer.from(bytes).toString('hex')).toBe(golden[name])
    expect(decode(codec, bytes)).toStrictEqual(value)
  })

  it('of every row', () => {
    expect(ROWS.map(([name]) => name)).toEqual(Object.keys(golden))
  })
})

describe('the numbers of kinds never change', () => {
  it('commands', () => {
    expect(COMMAND_KINDS).toEqual({
      openSession: 1,
      renew: 2,
      closeSession: 3,
      acquire: 4,
      cancel: 5,
      release: 6,
      adopt: 7,
      steal: 8,
      put: 9,
      delete: 10,
      configure: 11,
    })
  })

  it('results and changes', () => {
    expect(RESULT_KINDS).toEqual({
      opened: 1,
      renewed: 2,
      closed: 3,
      granted: 4,
      queued: 5,
      ended: 6,
      cancelled: 7,
      released: 8,
      stolen: 9,
      put: 10,
      deleted: 11,
      configured: 12,
      refused: 13,
    })
    expect(CHANGE_KINDS).toEqual({ granted: 1, refused: 2, ended: 3 })
  })

  it('events', () => {
    expect(EVENT_KINDS).toEqual({
      held: 1,
      freed: 2,
      queued: 3,
      unqueued: 4,
      sessionOpened: 5,
      sessionEnded: 6,
      put: 7,
      deleted: 8,
    })
  })

  it('messages', () => {
    expect(CLIENT_MESSAGE_KINDS).toEqual({
      hello: 1,
      attach: 2,
      command: 3,
      query: 4,
      get: 5,
      watch: 6,
      unwatch: 7,
      ping: 8,
    })
    expect(SERVER_MESSAGE_KINDS).toEqual({
      welcome: 1,
      attached: 2,
      result: 3,
      queryAnswer: 4,
      getAnswer: 5,
      push: 6,
      events: 7,
      pong: 8,
      error: 9,
    })
  })

  it('limits, of which all have a place', () => {
    expect(LIMIT_FIELDS).toEqual([
      'sessions',
      'holds',
      'holdsPerSession',
      'waitersPerLock',
      'locksPerAcquire',
      'dataBytes',
      'registers',
      'registerBytes',
      'ttlMinMs',
      'ttlMaxMs',
      'lockDelayMaxMs',
    ])
    expect([...LIMIT_FIELDS].sort()).toEqual(LIMIT_NAMES)
  })
})
