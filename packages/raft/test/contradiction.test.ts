import { describe, expect, it } from 'vitest'
import { message, type Message, RaftInvariantError } from '../src/index.js'
import { Hand } from './hand.js'

const plain = { preVote: false, checkQuorum: false }

/**
 * Nodes 1 and 2 commit `common` and then `lost`; node 3 hears of none of the latter. Node 2 is started on a copy of its disk
 * from before, and elects node 3 with it, which commits `later`.
 */
function forked(common: number, lost: number, later: number): Hand {
  const hand = new Hand([1, 2, 3], plain)
  hand.elect(1)
  for (let i = 0; i < common; i++) hand.propose(1, `common${i}`)
  hand.settle()
  const { hard, entries, snapshot } = hand.disks.get(2) as never as {
    hard: object
    entries: object[]
    snapshot: object
  }
  const copy = { hard: { ...hard }, entries: [...entries], snapshot: { ...snapshot } }
  for (let i = 0; i < lost; i++) hand.propose(1, `lost${i}`)
  hand.settle(({ to, from }) => to === 3 || from === 3)
  hand.disks.set(2, copy as never)
  hand.start(2)
  hand.elect(3, ({ to }) => to === 1)
  for (let i = 0; i < later; i++) hand.propose(3, `later${i}`)
  hand.settle(({ to }) => to === 1)
  expect(hand.raft(3)).toMatchObject({ role: 'leader', commit: 2 + common + later })
  return hand
}

/** Lets the leader and node 1 talk until node 1 stops. */
function meet(hand: Hand): Error | undefined {
  const isStrange = ({ to, from }: Message): boolean => ![1, 3].includes(to) || ![1, 3].includes(from)
  try {
    for (let i = 0; i < 20; i++) {
      hand.tick(3)
      hand.settle(isStrange)
    }
  } catch (error) {
    return error as Error
  }
  return undefined
}

describe('a follower whose committed entries the leader does not have', () => {
  it.each([
    { lost: 2, later: 8, compacted: false },
    { lost: 8, later: 1, compacted: false },
    { lost: 2, later: 8, compacted: true },
    { lost: 8, later: 1, compacted: true },
  ])('stops: %o', ({ lost, later, compacted }) => {
    const hand = forked(3, lost, later)
    if (compacted) {
      const { applied, configuration } = hand.raft(1).status
      hand.raft(1).snapshotTaken({ index: applied, term: hand.raft(1).termAt(applied) as number, configuration })
      hand.raft(1).compact(applied)
    }
    const committed = hand.raft(3).commit
    const error = meet(hand)
    expect(error).toBeInstanceOf(RaftInvariantError)
    expect(error?.message).toMatch(
      /the leader has an entry \d+ of term 2 that conflicts with a committed one here, of t/,
    )
    // The leader has not counted it, and continues.
    expect(hand.raft(3).status.progress.get(1)?.match).toBeLessThanOrEqual(4)
    hand.inbox = []
    hand.propose(3, 'more')
    hand.settle(({ to, from }) => to === 1 || from === 1)
    expect(hand.raft(3).commit).toBe(committed + 1)
  })
})

describe('a leader', () => {
  it('does not count an acknowledgement of what it does not have', () => {
    const hand = forked(3, 8, 1)
    const { term, lastIndex } = hand.raft(3)
    hand.give([message({ kind: 'appendReply', from: 1, to: 3, term, index: lastIndex + 1 })])
    expect(hand.raft(3).status.progress.get(1)?.match).toBe(0)
    expect(hand.raft(3).role).toBe('leader')
  })
})
