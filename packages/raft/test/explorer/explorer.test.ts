import { describe, expect, it } from 'vitest'
import { explore } from './explorer.js'

const few = { campaigns: 2, proposals: 1, crashes: 0, duplicates: 0, statesMax: 100_000 }

// RAFT_DEPTH=2 looks two steps deeper everywhere, for an hour rather than for seconds.
const more = Number(process.env.RAFT_DEPTH ?? 0)

describe('every order of events in a small group', () => {
  it.each([
    [
      'two candidates, and a voter that crashes',
      { ...few, members: 3, depth: 9 + more, proposals: 0, crashes: 1, crashing: [3] },
    ],
    ['two members, a crash at any moment', { ...few, members: 2, depth: 9 + more, crashes: 1 }],
    ['two members, any message twice', { ...few, members: 2, depth: 9 + more, duplicates: 1 }],
    ['one member, crashes', { ...few, members: 1, depth: 12 + more, campaigns: 3, crashes: 2, proposals: 2 }],
  ])('%s', { timeout: 3_600_000 }, (_, bounds) => {
    const { states, complete } = explore(bounds)
    expect(complete).toBe(true)
    expect(states).toBeGreaterThan(100)
  })
})
