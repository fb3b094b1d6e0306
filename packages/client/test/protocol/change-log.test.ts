import type { Change } from '@leasehold/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ChangeLog } from '../../src/protocol/change-log.js'
import { RequestWindow } from '../../src/protocol/request-window.js'

const change = (number: number): Change => ({ kind: 'ended', number, hold: 1 as never, reason: 'stolen', text: '' })

describe('changes of a session', () => {
  it('are processed once, pushed or in the answer of a renewal', () => {
    const log = new ChangeLog()
    expect(log.pushed(change(1))).toBe(true)
    expect(log.renewed([change(1), change(2)]).map(({ number }) => number)).toEqual([2])
    expect(log.pushed(change(2))).toBe(false)
    expect(log.seen).toBe(2)
  })

  it('a push right after a reconnect does not hide what was lost before it', () => {
    const log = new ChangeLog()
    log.pushed(change(1))
    log.reattached()
    expect(log.pushed(change(3))).toBe(true)
    expect(log.seen).toBe(1)
    expect(log.renewed([change(2), change(3)]).map(({ number }) => number)).toEqual([2])
    expect(log.seen).toBe(3)
  })

  it('any history of pushes, losses and renewals: each change once, and acknowledged only afterwards', () => {
    const step = fc.oneof(
      fc.constant('change' as const),
      fc.constant('lost' as const),
      fc.constant('reconnect' as const),
      fc.constant('renew' as const),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const log = new ChangeLog()
        const done: number[] = []
        let kept: Change[] = []
        let last = 0
        let connected = true
        const renew = () => {
          kept = kept.filter(({ number }) => number > log.seen)
          for (const { number } of log.renewed(kept)) done.push(number)
        }
        for (const one of [...steps, 'reconnect' as const, 'renew' as const]) {
          if (one === 'change' || one === 'lost') {
            // A push is lost only together with its connection.
            if (one === 'lost') connected = false
            const next = change(++last)
            kept.push(next)
            if (connected && log.pushed(next)) done.push(next.number)
          } else if (one === 'reconnect') {
            connected = true
            log.reattached()
          } else if (connected) renew()
          for (let number = 1; number <= log.seen; number++) expect(done).toContain(number)
        }
        expect([...done].sort((a, b) => a - b)).toEqual(Array.from({ length: last }, (_, i) => i + 1))
      }),
    )
  })
})

describe('request numbers', () => {
  it('any order of answers and losses: every answer is acknowledged in the end, and nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 100 }), (steps) => {
        const window = new RequestWindow()
        const open: number[] = []
        const answered = new Set<number>()
        const told = new Set<number>()
        let lowest = 1
        const note = (ack: { lowest: number; also: readonly number[] }) => {
          for (const number of ack.also) {
            expect(answered.has(number)).toBe(true)
            told.add(number)
          }
          for (let number = 1; number < ack.lowest; number++) expect(answered.has(number)).toBe(true)
          expect(ack.lowest).toBeGreaterThanOrEqual(lowest)
          lowest = ack.lowest
        }
        for (const step of steps) {
          if (step < 4) open.push(window.take())
          else if (step < 7 && open.length > 0) {
            const [number] = open.splice(step % open.length, 1)
            answered.add(number as number)
            window.answered(number as number)
          } else if (step === 7) note(window.takeAck())
          else if (step === 8) {
            window.restoreAllAcks()
            told.clear()
          } else window.restoreAck(window.takeAck())
        }
        window.restoreAllAcks()
        note(window.takeAck())
        for (const number of answered) expect(number < lowest || told.has(number)).toBe(true)
        expect(window.hasUnreported).toBe(false)
        expect(window.width).toBe(open.length === 0 ? 0 : window.take() - Math.min(...open))
      }),
    )
  })
})
