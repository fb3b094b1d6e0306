import { describe, expect, it } from 'vitest'
import { Bench } from './support.js'

const SESSIONS = 100_000
/** The sessions end within this time, and a leader closes an entry this often. */
const WITHIN_MS = 1000
const TICK_MS = 50

describe('a hundred thousand sessions that end within a second', () => {
  it('each end once, at their deadline, without any other session; their locks are free', () => {
    const bench = new Bench({ limits: { sessions: SESSIONS + 1 } })
    const kept = bench.open(3_600_000)
    for (let i = 0; i < SESSIONS; i++) {
      const session = bench.open(10_000 + (i % WITHIN_MS))
      bench.one(bench.acquireCommand(session, [`lock/${i}`]))
    }
    bench.advance(10_000 - 1)
    const perEntry: number[] = []
    for (let ms = 0; ms <= WITHIN_MS; ms += TICK_MS) {
      const { events } = bench.advance(TICK_MS)
      perEntry.push(events.filter(({ kind }) => kind === 'sessionEnded').length)
    }
    expect(perEntry.reduce((sum, count) => sum + count, 0)).toBe(SESSIONS)
    // Spread over the entries of that second: none of them has to end much more than its share.
    expect(Math.max(...perEntry)).toBeLessThanOrEqual((SESSIONS * TICK_MS) / WITHIN_MS)
    expect(bench.one(bench.acquireCommand(kept, ['lock/0', `lock/${SESSIONS - 1}`])).kind).toBe('granted')
  })
})
