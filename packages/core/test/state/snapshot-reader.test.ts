import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CodecError, LockState, type Millis } from '../../src/index.js'
import { Model } from './model.js'
import { Clients, hex, type Turn, turns } from './script.js'

/** Plays a script, and gives the state that it comes to. */
function stateAfter(script: readonly Turn[]): LockState {
  const state = LockState.create({ epoch: 3 })
  const model = new Model(3)
  const clients = new Clients(model)
  script.forEach(({ time, wishes }, i) => {
    const session = { secret: hex(600), ttlMs: 5000 as Millis, client: 'c', local: false }
    const commands =
      i === 0
        ? [0, 1, 2].map((n) => ({ kind: 'openSession' as const, nonce: hex(500 + n), ...session }))
        : wishes.map((wish) => clients.command(wish))
    const entry = { at: (i === 0 ? 1000 : clients.time(time)) as Millis, commands }
    state.apply(entry, (i + 1) as never)
    model.apply(entry)
  })
  return state
}

/** Reads `bytes` in steps; how many it took. */
function inSteps(bytes: Uint8Array, work: number): { readonly state: LockState; readonly steps: number } {
  const reading = LockState.beginRestore(bytes)
  for (let steps = 1; ; steps++) {
    const state = reading.step(work)
    if (state !== undefined) return { state, steps }
  }
}

describe('a snapshot that is read step by step', () => {
  it('gives the same state as one that is read in one go', () => {
    let most = 0
    fc.assert(
      fc.property(turns, fc.constantFrom(1, 17, 200, 100_000), (script, work) => {
        const written = stateAfter(script).snapshot()
        const whole = LockState.restore(written)
        const { state, steps } = inSteps(written, work)
        expect(state.hash()).toBe(whole.hash())
        expect(Buffer.compare(state.snapshot(), written)).toBe(0)
        expect(steps).toBeLessThanOrEqual(1 + Math.ceil(written.length / work))
        most = Math.max(most, steps)
      }),
      { numRuns: 60 },
    )
    expect(most).toBeGreaterThan(5)
  })

  it('is refused at the same place when it is cut', () => {
    fc.assert(
      fc.property(turns, fc.nat(), (script, at) => {
        const written = stateAfter(script).snapshot()
        const cut = written.subarray(0, at % written.length)
        const failure = (read: () => void): string => {
          try {
            read()
          } catch (error) {
            expect(error).toBeInstanceOf(CodecError)
            return (error as Error).message
          }
          return 'it was read'
        }
        expect(failure(() => inSteps(cut, 1))).toBe(failure(() => LockState.restore(cut)))
        expect(failure(() => inSteps(cut, 1))).not.toBe('it was read')
      }),
      { numRuns: 40 },
    )
  })
})
