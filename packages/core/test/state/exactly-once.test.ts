import { describe, expect, it } from 'vitest'
import { type Command, LockState, queryState, type Result } from '../../src/index.js'
import { Bench } from './support.js'

const SECRET = 'ab'.repeat(16)

function code(result: Result | undefined): string {
  return result?.kind === 'refused' ? result.code : (result?.kind ?? 'nothing')
}

function held(bench: Bench, name: string) {
  return queryState(bench.state, { name }, bench.state.index).held
}

describe('7. Exactly once', () => {
  const ack = { lowest: 1, also: [] }
  const numbered: Record<string, (bench: Bench, session: never, request: number) => Command> = {
    acquire: (bench, session, request) => bench.acquireCommand(session, ['x'], { request }),
    'acquire that waits': (bench, session, request) =>
      bench.acquireCommand(session, ['taken'], { request, waitMs: -1 }),
    'acquire that is refused': (bench, session, request) => bench.acquireCommand(session, ['taken'], { request }),
    release: (_, session, request) => ({ kind: 'release', session, request, ack, hold: 4 as never }),
    'release of nothing': (_, session, request) => ({ kind: 'release', session, request, ack, hold: 99 as never }),
    cancel: (_, session, request) => ({ kind: 'cancel', session, request, ack, target: request + 1 }),
    adopt: (_, session, request) => ({
      kind: 'adopt',
      session,
      request,
      ack,
      hold: 3 as never,
      secret: SECRET,
      newSecret: 'cd'.repeat(16),
    }),
    put: (_, session, request) => ({ kind: 'put', session, request, ack, key: 'k', value: new Uint8Array([1]) }),
    delete: (_, session, request) => ({ kind: 'delete', session, request, ack, key: 'k' }),
  }
  for (const [what, make] of Object.entries(numbered)) {
    it(`${what}: a repeat gets the first answer and has no effect; once acknowledged it is expired`, () => {
      const bench = new Bench()
      const [a, b] = [bench.open(), bench.open()]
      bench.hold(a, ['taken'], { portable: true, secret: SECRET })
      bench.hold(b, ['mine'])
      const command = make(bench, b as never, 7)
      const first = bench.one(command)
      const { counter } = bench.state.machine
      const copy = LockState.restore(bench.state.snapshot())
      for (let i = 0; i < 3; i++) {
        const { results, pushes, events } = bench.apply([command, command])
        expect(results).toEqual([first, first])
        expect([...pushes, ...events]).toEqual([])
      }
      copy.apply({ at: bench.state.now, commands: [] }, bench.state.index)
      expect(bench.state.hash()).toBe(copy.hash())
      expect(bench.state.machine.counter).toBe(counter)
      bench.one({ kind: 'renew', session: b, ack: { lowest: 1, also: [7] } })
      expect(code(bench.one(command))).toBe('expired-request')
      bench.one({ kind: 'renew', session: b, ack: { lowest: 9, also: [] } })
      expect(code(bench.one(command))).toBe('expired-request')
      expect(bench.state.machine.counter).toBe(counter)
    })
  }

  it('a request that was refused for a full window is not executed when its duplicate arrives late', () => {
    const bench = new Bench()
    const session = bench.open()
    const late = bench.acquireCommand(session, ['x'], { request: 700 })
    expect(code(bench.one(late))).toBe('limit')
    bench.one({ kind: 'renew', session, ack: { lowest: 600, also: [] } })
    expect(code(bench.one(late))).toBe('limit')
    expect(held(bench, 'x')).toEqual([])
  })

  it('the window begins at the lowest number that is open, as the request itself tells', () => {
    const bench = new Bench()
    const session = bench.open()
    const at = (request: number, lowest: number) =>
      code(bench.acquire(session, [`n${request}`], { request, ack: { lowest, also: [] } }))
    expect(at(2000, 1)).toBe('invalid')
    expect(at(2000, 1900)).toBe('granted')
    expect(at(1899, 1)).toBe('expired-request')
    expect(at(2411, 1900)).toBe('granted')
    expect(at(2412, 1900)).toBe('limit')
    expect(at(2925, 1900)).toBe('invalid')
  })

  it('a request that acknowledges itself is refused and has no effect', () => {
    const bench = new Bench()
    const session = bench.open()
    const command = bench.acquireCommand(session, ['x'], { request: 3, ack: { lowest: 1, also: [3] } })
    expect(code(bench.one(command))).toBe('invalid')
    expect(code(bench.one({ ...command, ack: { lowest: 1, also: [] } }))).toBe('granted')
  })

  it('a cancel that overtakes its acquire, and one that loses the race', () => {
    const bench = new Bench()
    const session = bench.open()
    const cancel = (request: number, target: number): Command => ({ kind: 'cancel', session, request, ack, target })
    expect(bench.one(cancel(2, 1))).toEqual({ kind: 'cancelled', was: 'unknown' })
    expect(code(bench.acquire(session, ['x'], { request: 1 }))).toBe('aborted')
    const won = bench.acquire(session, ['x'], { request: 3 })
    expect(won.kind).toBe('granted')
    expect(bench.one(cancel(4, 3))).toEqual({ kind: 'cancelled', was: 'granted' })
    expect(held(bench, 'x')).toEqual([])
    expect(code(bench.acquire(session, ['x'], { request: 3 }))).toBe('aborted')
  })

  it('without a session: release, steal and close may be repeated, a put only under its version', () => {
    const bench = new Bench()
    const [a, b] = [bench.open(), bench.open()]
    const one = bench.hold(a, ['x'], { portable: true, secret: SECRET })
    const release: Command = { kind: 'release', hold: one.hold, secret: SECRET }
    expect([release, release].map((command) => code(bench.one(command)))).toEqual(['released', 'not-holder'])
    bench.hold(b, ['x'])
    expect(code(bench.one(release))).toBe('not-holder')
    expect(held(bench, 'x')).toHaveLength(1)
    const close: Command = { kind: 'closeSession', session: a, by: 'owner', reason: '' }
    expect([close, close].map((command) => code(bench.one(command)))).toEqual(['closed', 'session-ended'])
    expect(code(bench.one({ kind: 'put', key: 'k', value: new Uint8Array() }))).toBe('invalid')
    expect(code(bench.one({ kind: 'put', key: 'k', value: new Uint8Array(), ifVersion: 0n }))).toBe('invalid')
    expect(code(bench.one({ kind: 'delete', key: 'k' }))).toBe('invalid')
    const made = bench.one({ kind: 'put', session: b, request: 9, ack, key: 'k', value: new Uint8Array() })
    if (made.kind !== 'put') throw new Error(code(made))
    const put: Command = { kind: 'put', key: 'k', value: new Uint8Array([1]), ifVersion: made.version }
    expect([put, put].map((command) => code(bench.one(command)))).toEqual(['put', 'version-conflict'])
  })

  it('a nonce names one session, however often it is opened', () => {
    const bench = new Bench()
    const open: Command = {
      kind: 'openSession',
      nonce: 'ee'.repeat(16),
      secret: SECRET,
      ttlMs: 1000 as never,
      client: '',
      local: false,
    }
    const { results } = bench.apply([open, { ...open, secret: 'cd'.repeat(16) }])
    expect(results[1]).toEqual(results[0])
    bench.advance(999)
    bench.one(open)
    // A repeat is no renewal: the client counts from its first attempt.
    expect(bench.advance(1).pushes).toHaveLength(1)
  })
})
