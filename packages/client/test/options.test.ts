import { InvalidError } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { acquirePlan, clientSettings, type LocksOptions, marginOf } from '../src/options.js'

const settings = clientSettings({})

function problem(run: () => unknown): InvalidError {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidError)
    return error as InvalidError
  }
  throw new Error('nothing was thrown')
}

describe('defaults', () => {
  it('are those of the documentation', () => {
    expect(settings).toMatchObject({ ttlMs: 10_000, waitMs: 30_000, connectTimeoutMs: 5_000, prefix: '' })
    expect(acquirePlan('a', {}, settings)).toMatchObject({
      ttlMs: 10_000,
      marginMs: 1_000,
      waitMs: 30_000,
      renew: true,
    })
  })

  it('the margin is a tenth of the TTL, but at least 20 ms', () => {
    expect(marginOf(10_000, undefined)).toBe(1_000)
    expect(marginOf(100, undefined)).toBe(20)
    expect(marginOf(201, undefined)).toBe(21)
  })
})

describe('durations', () => {
  it('a bare number below 1000 is refused for ttl and wait, with the hint', () => {
    expect(problem(() => clientSettings({ ttl: 30 })).hint).toBe("30 means 30 ms; write '30s' or '30ms'")
    expect(problem(() => acquirePlan('a', { wait: 30 }, settings)).hint).toContain("'30s'")
    expect(problem(() => acquirePlan('a', { ttl: 999 }, settings)).hint).toContain("'999s'")
    expect(acquirePlan('a', { wait: 0 }, settings).waitMs).toBe(0)
  })

  it('a number as text is refused', () => {
    expect(problem(() => clientSettings({ ttl: '30' })).hint).toBe("30 has no unit; write '30s' or '30ms'")
    expect(problem(() => acquirePlan('a', { wait: '5' }, settings)).hint).toContain("'5s'")
    expect(problem(() => clientSettings({ ttl: '30 sec' })).hint).toContain('250ms')
  })

  it('a ttl lies between 100 ms and 24 h', () => {
    for (const ttl of ['99ms', '25h', '2d']) problem(() => clientSettings({ ttl }))
    for (const ttl of ['100ms', '24h', '1d']) expect(clientSettings({ ttl }).ttlMs).toBeGreaterThan(0)
  })

  it('Infinity is a wait, not a ttl', () => {
    expect(acquirePlan('a', { wait: Number.POSITIVE_INFINITY }, settings).waitMs).toBe(Number.POSITIVE_INFINITY)
    problem(() => clientSettings({ ttl: Number.POSITIVE_INFINITY }))
  })

  it('a lock delay is at most 60 s', () => {
    problem(() => acquirePlan('a', { lockDelay: '61s' }, settings))
  })
})

describe('margin', () => {
  it('under a tenth of the ttl is invalid', () => {
    expect(problem(() => clientSettings({ ttl: '10s', margin: '999ms' })).code).toBe('invalid')
    problem(() => acquirePlan('a', { ttl: '60s', margin: '1s' }, settings))
    expect(clientSettings({ ttl: '10s', margin: '1s' }).marginMs).toBe(1_000)
  })

  it('that leaves nothing of the ttl is invalid', () => {
    problem(() => clientSettings({ ttl: '10s', margin: '10s' }))
  })

  it("of the client does not make a call's own ttl invalid", () => {
    const mine = clientSettings({ ttl: '10s', margin: '2s' })
    expect(acquirePlan('a', { ttl: '15s' }, mine).marginMs).toBe(2_000)
    expect(acquirePlan('a', { ttl: '60s' }, mine).marginMs).toBe(6_000)
    expect(acquirePlan('a', { ttl: '1s' }, mine).marginMs).toBe(100)
  })
})

describe('names and modes', () => {
  it('a name is text of 1 to 512 bytes without control characters', () => {
    for (const name of ['', 'a\n', 'x'.repeat(513), '\ud800', 7, null, undefined]) {
      problem(() => acquirePlan(name as string, {}, settings))
    }
  })

  it('a lock named twice, no lock, or too many are invalid', () => {
    problem(() => acquirePlan(['a', 'a'], {}, settings))
    problem(() => acquirePlan([], {}, settings))
    problem(() =>
      acquirePlan(
        Array.from({ length: 65 }, (_, i) => `n${i}`),
        {},
        settings,
      ),
    )
  })

  it('modes are exclusive, shared, or a number of permits', () => {
    problem(() => acquirePlan('a', { mode: 'write' as 'shared' }, settings))
    problem(() => acquirePlan('a', { permits: 0 }, settings))
    problem(() => acquirePlan('a', { permits: 2, mode: 'shared' }, settings))
    problem(() => acquirePlan({ name: 'a', size: 3 } as never, {}, settings))
    expect(acquirePlan(['a', { name: 'b', permits: 2 }], { mode: 'shared' }, settings).locks).toEqual([
      { name: 'a', mode: 'shared' },
      { name: 'b', mode: { permits: 2 } },
    ])
  })

  it('a namespace is a prefix of all names', () => {
    const mine = clientSettings({ namespace: 'team-a' })
    expect(acquirePlan('x', {}, mine).locks[0]?.name).toBe('team-a/x')
    problem(() => clientSettings({ namespace: '' }))
  })
})

describe('unknown and wrong options', () => {
  it('are refused by name', () => {
    expect(problem(() => clientSettings({ tll: '10s' } as LocksOptions)).message).toContain('"tll"')
    expect(problem(() => acquirePlan('a', { timeout: 5 } as object, settings)).hint).toContain('wait')
    problem(() => acquirePlan('a', null as never, settings))
    problem(() => acquirePlan('a', '5s' as never, settings))
    problem(() => acquirePlan('a', { persistent: 1 as never }, settings))
    problem(() => acquirePlan('a', { signal: {} as never }, settings))
    problem(() => acquirePlan('a', { data: 7 as never }, settings))
    problem(() => acquirePlan('a', { data: 'x'.repeat(4_097) }, settings))
    problem(() => acquirePlan('a', { persistent: true, maxHold: '5m' }, settings))
    problem(() => clientSettings({ apiKey: 7 as never }))
    problem(() => clientSettings({ clientName: 'x'.repeat(257) }))
  })
})
