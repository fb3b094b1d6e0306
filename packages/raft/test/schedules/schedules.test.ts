import { describe, expect, it } from 'vitest'
import { HAS_TESTDATA, textOf, WHERE } from '../testdata.js'
import { linesOf, Schedule } from './schedule.js'

const FOLDER = 'microsoft+CCF/tests/raft_scenarios'

/** The other core knows no stickiness, and its check of the quorum is an option of the schedule. */
const SCHEDULES = {
  pre_vote_double_leader: { preVote: true, checkQuorum: true, sticky: false },
  rollback_safety: { preVote: true, checkQuorum: false },
  'suffix_collision.3': { preVote: false, checkQuorum: false },
}

/**
 * How many of a schedule's statements about roles hold here. The rest differ on purpose: two leaders in a term are what the
 * first schedule wants to show, and in the second our leaders' first entries make another member's log too short to win.
 */
const STATEMENTS = { pre_vote_double_leader: 11, rollback_safety: 7, 'suffix_collision.3': 0 }

describe.skipIf(!HAS_TESTDATA)(`schedules of another core${WHERE}`, () => {
  it.each(Object.entries(SCHEDULES))('%s: no guarantee is broken, and the group recovers', (name, options) => {
    const played = new Schedule(linesOf(textOf(`${FOLDER}/${name}`)), options).play()
    expect(played.leaders).toBeGreaterThan(1)
    expect(played.applied).toBeGreaterThan(3)
    expect(played.held).toBeGreaterThanOrEqual(STATEMENTS[name as keyof typeof SCHEDULES])
  })
})
