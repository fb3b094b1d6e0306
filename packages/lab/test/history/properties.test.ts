import { checkHistory, modelNamed, type Operation } from '@leasehold/lab'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bruteForce, followAll } from './brute-force.js'
import { arbitraryHistory, linearizableHistory, MODEL_NAMES, nearlyLinearizableHistory } from './generate.js'

describe.each(MODEL_NAMES)('model %s', (name) => {
  const model = modelNamed(name)
  // A partition without any token cannot be judged by the fenced model; that it says so has a test of its own.
  const canJudge = (history: readonly Operation[]) => {
    try {
      return checkHistory(model, history) !== undefined
    } catch {
      return false
    }
  }

  it('accepts what was made from a sequential run', () => {
    fc.assert(
      fc.property(linearizableHistory(name, 40), (history) => {
        fc.pre(canJudge(history))
        expect(checkHistory(model, history).verdict).toBe('linearizable')
      }),
      { numRuns: 120 },
    )
  })

  it('agrees with trying every order', () => {
    const seen = { true: 0, false: 0 }
    fc.assert(
      fc.property(arbitraryHistory(name, 6), (history) => {
        fc.pre(canJudge(history))
        const expected = bruteForce(model, history)
        seen[`${expected}`]++
        expect(checkHistory(model, history).verdict).toBe(expected ? 'linearizable' : 'not-linearizable')
      }),
      { numRuns: 500 },
    )
    expect(Math.min(seen.true, seen.false), 'both verdicts are common').toBeGreaterThan(20)
  })

  it('agrees with following all configurations, on histories that are nearly right', () => {
    const seen = { true: 0, false: 0 }
    fc.assert(
      fc.property(nearlyLinearizableHistory(name, 16), (history) => {
        fc.pre(canJudge(history))
        const expected = followAll(model, history)
        seen[`${expected}`]++
        expect(checkHistory(model, history).verdict).toBe(expected ? 'linearizable' : 'not-linearizable')
      }),
      { numRuns: 300 },
    )
    expect(Math.min(seen.true, seen.false), 'both verdicts are common').toBeGreaterThan(20)
  })

  it('names the smallest prefix without an order', () => {
    fc.assert(
      fc.property(arbitraryHistory(name, 6), (history) => {
        fc.pre(canJudge(history))
        const { explanation } = checkHistory(model, history)
        fc.pre(explanation !== undefined)
        const stuck = history.find(({ process }) => process === explanation?.stuck.process) as Operation
        const end = stuck.returnedAt as number
        const judged = history.filter((one) => one.outcome !== 'fail' && model.partition(one) === explanation?.key)
        const known = judged.filter((one) => one.invokedAt <= end)
        const counted = model.relevant?.(judged) ?? judged
        expect(explanation?.prefix).toBe(counted.filter((one) => one.invokedAt <= end).length)
        const returnsBefore = (one: Operation) => one.outcome === 'ok' && (one.returnedAt as number) < end
        const start = model.init(judged)
        const fixed = { ...model, init: () => start }
        expect(bruteForce(fixed, known, returnsBefore)).toBe(true)
        expect(bruteForce(fixed, known, (one) => one.outcome === 'ok' && (one.returnedAt as number) <= end)).toBe(false)
      }),
      { numRuns: 250 },
    )
  })
})
