import { describe, expect, it } from 'vitest'
import { message } from '../src/index.js'
import { Hand } from './hand.js'

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

  it('touch neither term nor vote of those who are asked', () => {
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
