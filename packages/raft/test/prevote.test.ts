import { describe, expect, it } from 'vitest'
import { message } from '../src/index.js'
import { Hand } from './hand.js'

const ELECTION_TICKS = 16
const OPTIONS = { limits: { electionTicks: ELECTION_TICKS } }

describe('pre-votes', () => {
  it('a grant for an earlier term that was asked about does not count for the next', () => {
    const hand = new Hand([1, 2, 3])
    hand.raft(1).campaign()
    hand.flush(1)
    expect(hand.take().map(({ kind, term }) => `${kind} ${term}`)).toEqual(['preVote 1', 'preVote 1'])
    hand.give([message({ kind: 'heartbeat', from: 2, to: 1, term: 1 })])
    hand.raft(1).campaign()
    hand.flush(1)
    hand.inbox = []
    expect(hand.raft(1)).toMatchObject({ role: 'preCandidate', term: 1 })
    hand.give([message({ kind: 'preVoteReply', from: 3, to: 1, term: 1 })])
    expect(hand.raft(1)).toMatchObject({ role: 'preCandidate', term: 1 })
    hand.give([message({ kind: 'preVoteReply', from: 3, to: 1, term: 2 })])
    expect(hand.raft(1)).toMatchObject({ role: 'candidate', term: 2 })
  })

  it('change neither term nor vote of the voters', () => {
    const hand = new Hand([1, 2, 3])
    hand.raft(1).campaign()
    hand.flush(1)
    hand.give(hand.take((one) => one.to === 2))
    expect(hand.raft(2).status).toMatchObject({ term: 0, vote: 0 })
  })

  it('are refused to a log that is behind', () => {
    const hand = new Hand([1, 2, 3])
    hand.elect(1, (one) => one.to === 3 && one.kind === 'append')
    for (const id of [2, 3]) hand.raft(id).forgetLeader()
    hand.raft(3).campaign()
    hand.flush(3)
    hand.settle((one) => one.to === 1)
    expect(hand.raft(3)).toMatchObject({ role: 'preCandidate', term: 1 })
  })
})

describe('a leader whose process is known to have ended', () => {
  /** Ticks until member 2 stands for election; the leader stays silent. */
  function ticksToElection(hand: Hand): number {
    for (let ticks = 1; ; ticks++) {
      hand.raft(2).tick()
      if (hand.raft(2).role === 'preCandidate') return ticks
    }
  }

  it('is replaced before an election timeout has passed', () => {
    const silent = new Hand([1, 2, 3], OPTIONS)
    silent.elect(1)
    const known = new Hand([1, 2, 3], OPTIONS)
    known.elect(1)
    known.raft(2).processEnded(1)
    expect(ticksToElection(silent)).toBeGreaterThanOrEqual(ELECTION_TICKS)
    expect(ticksToElection(known)).toBeLessThanOrEqual(1 + ELECTION_TICKS / 2)
  })

  it('is abandoned by members that know it is dead; members that hear from a live leader do not vote', () => {
    const hand = new Hand([1, 2, 3], OPTIONS)
    hand.elect(1)
    hand.raft(2).processEnded(1)
    ticksToElection(hand)
    hand.settle((one) => one.from === 1 || one.to === 1)
    expect(hand.raft(2)).toMatchObject({ role: 'preCandidate', term: 1 })
    hand.raft(3).processEnded(1)
    hand.raft(2).campaign()
    hand.flush(2)
    hand.settle((one) => one.from === 1 || one.to === 1)
    expect(hand.raft(2)).toMatchObject({ role: 'leader', term: 2 })
  })

  it('changes nothing when it was another member', () => {
    const hand = new Hand([1, 2, 3])
    hand.elect(1)
    hand.raft(2).processEnded(3)
    expect(hand.raft(2)).toMatchObject({ role: 'follower', leader: 1 })
    hand.raft(1).processEnded(1)
    expect(hand.raft(1).role).toBe('leader')
  })
})
