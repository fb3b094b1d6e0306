import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Correlations } from '../../src/protocol/correlations.js'
import { EarlyFlush } from '../../src/protocol/early-flush.js'
import { RequestWindow } from '../../src/protocol/request-window.js'

describe('the table of open requests', () => {
  it('maps numbers to requests, however many are open and in whatever order they end', () => {
    const step = fc.record({
      kind: fc.constantFrom('take', 'take', 'takeBare', 'answer', 'drop'),
      which: fc.nat({ max: 200 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const window = new RequestWindow<string>()
        const model = new Map<number, string>()
        const open: number[] = []
        for (const { kind, which } of steps) {
          if (kind === 'take' || kind === 'takeBare') {
            const number = window.take()
            open.push(number)
            if (kind === 'takeBare') continue
            window.set(number, `request ${number}`)
            model.set(number, `request ${number}`)
          } else if (open.length > 0) {
            const at = which % open.length
            const number = open[at] as number
            if (kind === 'drop') expect(window.drop(number)).toBe(model.delete(number))
            else {
              window.answered(number)
              model.delete(number)
              open.splice(at, 1)
            }
          }
          expect(window.size).toBe(model.size)
          expect(window.values()).toEqual([...model].sort(([a], [b]) => a - b).map(([, value]) => value))
        }
        for (let number = 0; number <= 310; number++) expect(window.get(number)).toBe(model.get(number))
      }),
    )
  })
})

describe('correlations', () => {
  it('a number belongs to one request at a time, and is reused', () => {
    const awaited = new Correlations<string>()
    const first = awaited.add('a')
    const second = awaited.add('b')
    expect([first, second, awaited.size]).toEqual([1, 2, 2])
    expect(awaited.take(first)).toBe('a')
    expect(awaited.take(first)).toBeUndefined()
    expect(awaited.take(99)).toBeUndefined()
    expect(awaited.add('c')).toBe(first)
    expect(awaited.take(second)).toBe('b')
    awaited.clear()
    expect([awaited.size, awaited.take(first)]).toEqual([0, undefined])
  })
})

describe('the pace of frames', () => {
  /** Bursts of `burst` messages; the service takes `serviceMs`, this side `ownMs`. */
  function after(rounds: number, burst: number, serviceMs: number, ownMs: number): EarlyFlush {
    const pace = new EarlyFlush()
    let now = 0
    for (let round = 0; round < rounds; round++) {
      pace.heard(now)
      now += ownMs
      pace.turnEnded(burst, now)
      pace.sent(burst, now)
      now += serviceMs
    }
    return pace
  }

  it('a part of a large burst is sent early when both sides take about as long', () => {
    const pace = after(20, 64, 0.4, 0.1)
    expect(pace.shouldFlush(31, 64)).toBe(false)
    expect(pace.shouldFlush(32, 64)).toBe(true)
    // Not one small frame after another: each has a quarter of all that is open.
    expect(pace.shouldFlush(32, 512)).toBe(false)
    expect(pace.shouldFlush(128, 512)).toBe(true)
  })

  it('everything is sent together when the service takes long: one flush for all', () => {
    expect(after(20, 64, 5, 0.1).shouldFlush(64, 64)).toBe(false)
  })

  it('and while nothing is known', () => {
    expect(new EarlyFlush().shouldFlush(64, 64)).toBe(false)
    expect(after(20, 8, 0.1, 0.1).shouldFlush(64, 64)).toBe(false)
  })
})
