import { describe, expect, it } from 'vitest'
import {
  type Acquire,
  COUNTER_MAX,
  type Command,
  DEFAULT_LIMITS,
  LIMIT_NAMES,
  LockState,
  type Limits,
  queryState,
  type Result,
  type SessionId,
} from '../../src/index.js'
import { hex } from './script.js'
import { Bench } from './support.js'

function code(result: Result): string {
  return result.kind === 'refused' ? result.code : result.kind
}

const ACK = { lowest: 1, also: [] }

function open(nonce: number, ttlMs = 1000): Command {
  return { kind: 'openSession', nonce: hex(nonce), secret: hex(nonce), ttlMs: ttlMs as never, client: '', local: false }
}

function put(bench: Bench, session: SessionId, key: string, bytes = 0): Command {
  return { kind: 'put', session, request: bench.next(session), ack: ACK, key, value: new Uint8Array(bytes) }
}

/** For each limit: what goes up to it, and what goes beyond it. */
const CASES: Record<
  keyof Limits,
  {
    limit: number
    within: (bench: Bench, session: SessionId) => string[]
    beyond: (bench: Bench, session: SessionId) => string[]
  }
> = {
  sessions: {
    limit: 2,
    within: (bench) => [code(bench.one(open(77)))],
    beyond: (bench) => [code(bench.one(open(78)))],
  },
  holds: {
    limit: 2,
    within: (bench, session) => [
      code(bench.acquire(session, ['a'])),
      code(bench.acquire(session, ['a'], { waitMs: -1 })),
    ],
    beyond: (bench, session) => [code(bench.acquire(session, ['b']))],
  },
  holdsPerSession: {
    limit: 2,
    within: (bench, session) => [
      code(bench.acquire(session, ['a'])),
      code(bench.acquire(session, ['a'], { waitMs: -1 })),
    ],
    beyond: (bench, session) => {
      const other = bench.open()
      const secret = hex(9)
      const { hold } = bench.hold(other, [`c${bench.state.index}`], { portable: true, secret })
      const adopt: Command = {
        kind: 'adopt',
        session,
        request: bench.next(session),
        ack: ACK,
        hold,
        secret,
        newSecret: secret,
      }
      return [code(bench.acquire(session, ['b'])), code(bench.one(adopt))]
    },
  },
  waitersPerLock: {
    limit: 2,
    within: (bench, session) => {
      bench.hold(session, ['a'])
      return [1, 2].map(() => code(bench.acquire(session, ['a'], { waitMs: -1 })))
    },
    beyond: (bench, session) => [code(bench.acquire(session, ['b', 'a'], { waitMs: -1 }))],
  },
  locksPerAcquire: {
    limit: 2,
    within: (bench, session) => [code(bench.acquire(session, ['a', 'b']))],
    beyond: (bench, session) => [code(bench.acquire(session, ['c', 'd', 'e']))],
  },
  dataBytes: {
    limit: 2,
    within: (bench, session) => [code(bench.acquire(session, ['a'], { data: new Uint8Array(2) }))],
    beyond: (bench, session) => [code(bench.acquire(session, ['b'], { data: new Uint8Array(3) }))],
  },
  registers: {
    limit: 2,
    within: (bench, session) => ['k', 'l', 'k'].map((key) => code(bench.one(put(bench, session, key)))),
    beyond: (bench, session) => [code(bench.one(put(bench, session, 'm')))],
  },
  registerBytes: {
    limit: 2,
    within: (bench, session) => [code(bench.one(put(bench, session, 'k', 2)))],
    beyond: (bench, session) => [code(bench.one(put(bench, session, 'k', 3)))],
  },
  ttlMinMs: {
    limit: 200,
    within: (bench) => [code(bench.one(open(77, 200)))],
    beyond: (bench) => [code(bench.one(open(78, 199)))],
  },
  ttlMaxMs: {
    limit: 20_000,
    within: (bench) => [code(bench.one(open(77, 20_000)))],
    beyond: (bench) => [code(bench.one(open(78, 20_001)))],
  },
  lockDelayMaxMs: {
    limit: 200,
    within: (bench, session) => [code(bench.acquire(session, ['a'], { lockDelayMs: 200 as never }))],
    beyond: (bench, session) => [code(bench.acquire(session, ['b'], { lockDelayMs: 201 as never }))],
  },
}

describe('limits', () => {
  it('there is a case for every limit', () => {
    expect(Object.keys(CASES).sort()).toEqual(LIMIT_NAMES)
  })

  for (const name of LIMIT_NAMES) {
    const { limit, within, beyond } = CASES[name]
    it(`${name}: up to it, not beyond, and again beyond when it is raised`, () => {
      const bench = new Bench()
      const session = bench.open()
      const set = (value: number) => bench.one({ kind: 'configure', limits: { [name]: value } })
      expect(set(limit)).toEqual({ kind: 'configured' })
      expect(bench.state.limits[name]).toBe(limit)
      for (const answer of within(bench, session)) expect(['granted', 'queued', 'opened', 'put']).toContain(answer)
      const refused = ['ttlMinMs', 'ttlMaxMs', 'lockDelayMaxMs'].includes(name) ? 'invalid' : 'limit'
      for (const answer of beyond(bench, session)) expect(answer).toBe(refused)
      Object.assign(bench, { state: LockState.restore(bench.state.snapshot()) })
      expect(bench.state.limits[name]).toBe(limit)
      set(name === 'ttlMinMs' ? 1 : DEFAULT_LIMITS[name])
      for (const answer of beyond(bench, session)) expect(['granted', 'queued', 'opened', 'put']).toContain(answer)
    })
  }

  it('a lowered limit takes nothing away', () => {
    const bench = new Bench()
    const session = bench.open()
    bench.hold(session, ['a', 'b'])
    bench.hold(session, ['c'])
    bench.acquire(session, ['c'], { waitMs: -1 })
    const zero = Object.fromEntries(LIMIT_NAMES.map((name) => [name, 0])) as unknown as Limits
    expect(bench.one({ kind: 'configure', limits: zero }).kind).toBe('configured')
    expect(queryState(bench.state, {}, bench.state.index)).toMatchObject({
      held: [{}, {}],
      pending: [{}],
      sessions: [{}],
    })
    expect(bench.one({ kind: 'renew', session }).kind).toBe('renewed')
  })

  it('settings are taken whole or not at all', () => {
    const bench = new Bench()
    const before = bench.state.limits
    const wrong: Command[] = [
      { kind: 'configure', limits: { sessions: 5 }, level: 99 },
      { kind: 'configure', limits: { sessions: 5 }, level: 0 },
      { kind: 'configure', limits: { sessions: 5 }, permits: { name: 'nobody', size: 3 } },
      { kind: 'configure', limits: { sessions: 5, nonsense: 3 } as Partial<Limits> },
      { kind: 'configure', limits: { sessions: 5, holds: -1 } },
    ]
    for (const command of wrong) expect(['invalid', 'mismatch']).toContain(code(bench.one(command)))
    expect(bench.state.limits).toEqual(before)
  })

  it('a semaphore is resized to 1 … 65536 permits', () => {
    const bench = new Bench()
    bench.hold(bench.open(), [{ name: 'p', mode: { permits: 2 } }])
    const resize = (size: number) => code(bench.one({ kind: 'configure', permits: { name: 'p', size } }))
    expect([0, 65_537, 2 ** 53 - 1, 65_536, 1].map(resize)).toEqual([
      'invalid',
      'invalid',
      'invalid',
      'configured',
      'configured',
    ])
  })

  it('a client that looks at none of its changes gets no more holds, by acquire or by adoption', () => {
    const bench = new Bench()
    const session = bench.open(60_000)
    const secret = hex(5)
    let { hold } = bench.hold(session, ['x'], { portable: true, secret })
    const adopt = (): Result => {
      const request = bench.next(session)
      const ack = { lowest: request, also: [] }
      return bench.one({ kind: 'adopt', session, request, ack, hold, secret, newSecret: secret })
    }
    for (let i = 0; i < 2048; i++) {
      const result = adopt()
      if (result.kind !== 'granted') throw new Error(`${i}: ${code(result)}`)
      hold = result.grant.hold
    }
    expect(code(adopt())).toBe('limit')
    const options: Partial<Acquire> = { ack: { lowest: 2000, also: [] } }
    expect(code(bench.acquire(session, ['y'], options))).toBe('limit')
    bench.one({ kind: 'renew', session, seen: 2048 })
    expect(code(adopt())).toBe('granted')
  })
})

describe('a full counter', () => {
  it('is `limit` for everything that needs a new id, and everything else still works', () => {
    const bench = new Bench()
    const [a, b] = [bench.open(60_000), bench.open(60_000)]
    const secret = hex(5)
    const x = bench.hold(a, ['x'], { portable: true, secret })
    bench.acquire(b, ['x'], { waitMs: 5000 })
    const made = bench.one(put(bench, a, 'k'))
    bench.state.machine.counter = COUNTER_MAX - 1
    expect(bench.hold(a, ['last']).hold).toBe(COUNTER_MAX)
    expect(code(bench.one(open(77)))).toBe('limit')
    expect(code(bench.acquire(a, ['y']))).toBe('limit')
    expect(code(bench.one(put(bench, a, 'k')))).toBe('limit')
    const adopt: Command = {
      kind: 'adopt',
      session: b,
      request: bench.next(b),
      ack: ACK,
      hold: x.hold,
      secret,
      newSecret: secret,
    }
    expect(code(bench.one(adopt))).toBe('limit')
    // Nothing can be granted after the release: the waiter times out, and the state stays consistent.
    expect(code(bench.one({ kind: 'release', session: a, hold: x.hold }))).toBe('released')
    const copy = LockState.restore(bench.state.snapshot())
    expect(copy.hash()).toBe(bench.state.hash())
    const { pushes } = bench.advance(5000)
    expect(pushes).toMatchObject([{ session: b, change: { kind: 'refused', refused: { code: 'timeout' } } }])
    const ifVersion = made.kind === 'put' ? made.version : 0n
    expect(code(bench.one({ kind: 'delete', key: 'k', ifVersion }))).toBe('deleted')
    expect(code(bench.one({ kind: 'renew', session: a }))).toBe('renewed')
    expect(bench.state.machine.counter).toBe(COUNTER_MAX)
    // A later epoch has a counter of its own.
    const { state } = bench.state.withEpoch(2)
    expect(
      code(
        state.apply({ at: bench.at as never, commands: [open(79)] }, (bench.state.index + 1) as never)
          .results[0] as Result,
      ),
    ).toBe('opened')
  })
})

describe('the end of time', () => {
  it('waits, sessions and delays that would end beyond it end at it, and the state can still be written down', () => {
    const bench = new Bench({ limits: { ttlMaxMs: Number.MAX_SAFE_INTEGER, lockDelayMaxMs: Number.MAX_SAFE_INTEGER } })
    const far = Number.MAX_SAFE_INTEGER
    const session = bench.open(far)
    const { hold } = bench.hold(session, ['x'], { lockDelayMs: far as never })
    expect(code(bench.acquire(session, ['x'], { waitMs: far }))).toBe('queued')
    bench.one({ kind: 'steal', hold, actor: '', reason: '' })
    bench.one({ kind: 'renew', session })
    expect(LockState.restore(bench.state.snapshot()).hash()).toBe(bench.state.hash())
    bench.at = far
    expect(bench.apply([]).pushes).toMatchObject([{ session, ended: 'expired' }])
    expect(bench.state.hasDeadlines).toBe(false)
    bench.open(1000)
    expect(LockState.restore(bench.state.snapshot()).hash()).toBe(bench.state.hash())
  })
})
