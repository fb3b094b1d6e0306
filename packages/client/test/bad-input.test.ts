import { InvalidError } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { createLocksOn, type Locks, ProtocolEngine } from '../src/index.js'
import { settle } from './support/platform.js'
import { suite } from './support/suite.js'

const at = suite()

/** An option of a call, wrong values, and a right value that the message or its hint has to show. */
type Row = readonly [option: string, wrong: readonly unknown[], right: RegExp]

const DURATION = /'\d+(ms|s|m|h|d)'/
const NOT_DURATIONS = ['30', 'soon', '10 sec', -1, 1.5, Number.NaN, null, {}, true, 10n]

const CLIENT: readonly Row[] = [
  ['ttl', [30, ...NOT_DURATIONS, '50ms', '2d', Number.POSITIVE_INFINITY], DURATION],
  ['wait', [5, ...NOT_DURATIONS], DURATION],
  ['margin', [...NOT_DURATIONS, '1ms', '10s'], DURATION],
  ['connectTimeout', [0, ...NOT_DURATIONS], DURATION],
  ['namespace', ['', 7, null, 'a\n'], /'team-a'/],
  ['clientName', [7, null, 'x'.repeat(257)], /'worker 7'/],
  ['apiKey', [7, null, {}], /key create/],
]

const ACQUIRE: readonly Row[] = [
  ['ttl', [30, ...NOT_DURATIONS, '50ms', '2d', Number.POSITIVE_INFINITY], DURATION],
  ['wait', [5, ...NOT_DURATIONS], DURATION],
  ['margin', [...NOT_DURATIONS, '1ms', '10s'], DURATION],
  ['lockDelay', ['61s', ...NOT_DURATIONS], DURATION],
  ['maxHold', [0, 5, ...NOT_DURATIONS], DURATION],
  ['mode', ['write', 7, null, {}], /'shared'/],
  ['permits', [0, -1, 1.5, '4', 65_537, null, Number.POSITIVE_INFINITY], /permits: 4/],
  ['signal', [{}, 7, null, 'abort'], /AbortSignal/],
  ['persistent', [1, 'yes', null], /persistent: true/],
  ['portable', [1, 'yes', null], /portable: true/],
  ['renew', [0, 'no', null], /true/],
  ['data', [7, {}, null, 'x'.repeat(4_097)], /JSON\.stringify|reference/],
]

const QUERY: readonly Row[] = [
  ['prefix', [7, null, 'a\n'], /'billing'/],
  ['limit', [0, -1, 1.5, '9', null], /limit: 100/],
  ['cursor', [7, null, {}], /page\.next/],
  ['stale', [1, 'yes', null], /stale: true/],
]

async function refusal(run: () => unknown): Promise<InvalidError> {
  const outcome = Promise.resolve()
    .then(run)
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
  // Whatever waits was not refused.
  const error = await Promise.race([outcome, settle()])
  expect(error).toBeInstanceOf(InvalidError)
  return error as InvalidError
}

async function refused(call: string, rows: readonly Row[], run: (options: object) => unknown): Promise<void> {
  for (const [option, wrong, right] of rows) {
    for (const value of wrong) {
      const error = await refusal(() => run({ [option]: value }))
      const text = `${call} ${option} ${error.message} ${error.hint}`
      expect(text).toContain(`${option}`)
      expect(error.message, text).toMatch(new RegExp(`\\b${option}\\b`))
      expect(`${error.message} ${error.hint ?? ''}`, text).toMatch(right)
    }
  }
}

describe('every option is validated, and the message names it and shows a right value', () => {
  it('of a client', async () => {
    const { platform, network, url } = at.service
    const engine = () => new ProtocolEngine({ urls: [url], connector: network, platform })
    await refused('createLocks', CLIENT, (options) => createLocksOn(engine(), options, { platform }))
  })

  it('of acquire, tryAcquire, request and campaign', async () => {
    const locks = at.service.client()
    await refused('acquire', ACQUIRE, (options) => locks.acquire('a', options))
    await refused('request', ACQUIRE, (options) => locks.request('a', { ...options, ifAvailable: false }, () => {}))
    const noWait = ACQUIRE.filter(([option]) => option !== 'wait')
    await refused('tryAcquire', noWait, (options) => locks.tryAcquire('a', options))
    const terms = ['ttl', 'wait', 'margin', 'signal', 'maxHold', 'lockDelay', 'renew']
    const campaign = ACQUIRE.filter(([option]) => terms.includes(option))
    await refused('campaign', campaign, (options) => locks.election('a').campaign(options))
    await refused('campaign', [['value', [7, null, {}, 'x'.repeat(4_097)], /'host-1'/]], (options) =>
      locks.election('a').campaign(options),
    )
    expect(at.service.network.toServer).toBe(0)
  })

  it('of query, watch, once and close', async () => {
    const locks = at.service.client()
    await refused('query', QUERY, (options) => locks.query(options))
    const watch = (options: object) => locks.watch(options).next()
    await refused('watch', [QUERY[0] as Row, ['signal', [{}, null], /AbortSignal/]], watch)
    await refusal(() => watch({ from: 'yesterday' }))
    await refused(
      'once',
      [['slot', ['', null, 7, undefined, new Date(Number.NaN), 'x'.repeat(201)], /'2026-/]],
      (options) => locks.once('a', options as never, () => {}),
    )
    await refusal(() => locks.once('a', { slot: '1', onError: 'retry' as never }, () => {}))
    await refusal(() => locks.once('a', { slot: '1' }, undefined as never))
    await refused('close', [['drain', NOT_DURATIONS, DURATION]], (options) => locks.close(options))
    await locks.close()
  })
})

describe('unknown options are refused, with those that exist', () => {
  const calls: readonly [string, (locks: Locks, options: object) => unknown][] = [
    ['acquire', (locks, options) => locks.acquire('a', options)],
    ['tryAcquire', (locks, options) => locks.tryAcquire('a', options)],
    ['request', (locks, options) => locks.request('a', options as never, () => {})],
    ['adopt', (locks, options) => locks.adopt('x', options)],
    ['query', (locks, options) => locks.query(options)],
    ['watch', (locks, options) => locks.watch(options).next()],
    ['steal', (locks, options) => locks.steal('a', options as never)],
    ['campaign', (locks, options) => locks.election('a').campaign(options)],
    ['observe', (locks, options) => locks.election('a').observe(options).next()],
    ['get', (locks, options) => locks.register('a').get(options)],
    ['put', (locks, options) => locks.register('a').put(1, options)],
    ['delete', (locks, options) => locks.register('a').delete(options)],
    ['watch', (locks, options) => locks.register('a').watch(options).next()],
    ['once', (locks, options) => locks.once('a', { slot: '1', ...options }, () => {})],
    ['close', (locks, options) => locks.close(options)],
  ]
  it.each(calls)('%s', async (what, call) => {
    const locks = at.service.client()
    const error = await refusal(() => call(locks, { tll: '10s' }))
    expect(error.message).toContain(`${what} has no option "tll"`)
    expect(error.hint).toMatch(/it knows \w+/)
    await locks.close()
  })

  it('a leadership is exclusive: campaign takes no mode and no data', async () => {
    const election = at.service.client().election('a')
    for (const options of [{ mode: 'shared' }, { permits: 2 }, { data: 'x' }, { persistent: true }]) {
      await refusal(() => election.campaign(options as never))
    }
  })

  it('names of locks, one by one', async () => {
    const locks = at.service.client()
    for (const name of [
      '',
      'a\n',
      'x'.repeat(513),
      '\ud800',
      7,
      null,
      undefined,
      {},
      [],
      ['a', 'a'],
      [{}],
      [{ name: 'a', size: 1 }],
    ]) {
      await refusal(() => locks.acquire(name as string))
      if (!Array.isArray(name)) await refusal(() => locks.steal(name as string, { reason: 'r' }))
      if (!Array.isArray(name)) await refusal(() => locks.register(name as string))
      if (!Array.isArray(name)) await refusal(() => locks.election(name as string))
    }
    await refusal(() => locks.on('lost' as never, () => {}))
  })
})
