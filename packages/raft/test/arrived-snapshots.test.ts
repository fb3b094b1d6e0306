import { describe, expect, it } from 'vitest'
import { type Message, message } from '../src/messages.js'
import { Hand } from './hand.js'

const configuration = { voters: [1, 2, 3], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
const plain = { preVote: false, checkQuorum: false }
const noData = new Uint8Array(0)
const entries = [1, 2, 3].map((index) => ({ term: 1, index, kind: 'normal' as const, data: noData }))

/** Node 1 has three entries of term 1, two of them committed, and hears from node 3, which leads in term 2. */
function follower(): Hand {
  const hand = new Hand([1, 2, 3], plain)
  hand.give([message({ kind: 'append', from: 2, to: 1, term: 1, entries, commit: 2 })])
  hand.give([message({ kind: 'heartbeat', from: 3, to: 1, term: 2 })])
  hand.inbox = []
  return hand
}

describe('a snapshot that became durable after its leader was replaced', () => {
  it('is not taken from a message of the old term', () => {
    const hand = follower()
    const snapshot = { index: 9, term: 1, configuration }
    hand.give([message({ kind: 'snapshot', from: 2, to: 1, term: 1, snapshot })])
    expect(hand.raft(1)).toMatchObject({ commit: 2, lastIndex: 3 })
  })

  it('takes the place of the log in the same term, and the present leader learns of it', () => {
    const hand = follower()
    hand.raft(1).snapshotArrived({ index: 9, term: 1, configuration })
    hand.flush(1)
    expect(hand.raft(1)).toMatchObject({ role: 'follower', term: 2, leader: 3, commit: 9, lastIndex: 9 })
    expect(hand.take()).toMatchObject([{ kind: 'appendReply', to: 3, term: 2, index: 9, reject: false }])
    expect(hand.disks.get(1)).toMatchObject({ hard: { term: 2, commit: 9 }, snapshot: { index: 9, term: 1 } })
  })

  it('tells the leader only once the write is durable', () => {
    const hand = follower()
    hand.autoWrite = false
    hand.raft(1).snapshotArrived({ index: 9, term: 1, configuration })
    hand.flush(1)
    expect(hand.take()).toEqual([])
    hand.write(1)
    expect(hand.take()).toMatchObject([{ kind: 'appendReply', to: 3, index: 9 }])
  })

  it('commits what the log has already, and keeps the tail', () => {
    const hand = follower()
    const more = { term: 2, index: 4, kind: 'normal' as const, data: noData }
    hand.give([message({ kind: 'append', from: 3, to: 1, term: 2, index: 3, logTerm: 1, entries: [more], commit: 2 })])
    hand.inbox = []
    hand.raft(1).snapshotArrived({ index: 3, term: 1, configuration })
    hand.flush(1)
    expect(hand.raft(1)).toMatchObject({ commit: 3, lastIndex: 4 })
    expect(hand.take()).toMatchObject([{ kind: 'appendReply', to: 3, index: 3 }])
  })

  it('changes nothing when all of it is committed here', () => {
    const hand = follower()
    hand.raft(1).snapshotArrived({ index: 2, term: 1, configuration })
    hand.flush(1)
    expect(hand.raft(1)).toMatchObject({ commit: 2, lastIndex: 3 })
    expect(hand.take()).toEqual([])
  })

  it('ends the election of a candidate, which could not win it', () => {
    for (const preVote of [true, false]) {
      const hand = new Hand([1, 2, 3], { ...plain, preVote })
      hand.raft(1).campaign()
      hand.flush(1)
      const { term } = hand.raft(1)
      hand.inbox = []
      hand.raft(1).snapshotArrived({ index: 9, term: 1, configuration })
      hand.flush(1)
      expect(hand.raft(1)).toMatchObject({ role: 'follower', term, leader: 0, commit: 9, lastIndex: 9 })
      expect(hand.take()).toEqual([])
    }
  })

  it('commits what a leader has in its log, and the leader continues', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.give([message({ kind: 'append', from: 2, to: 1, term: 1, entries, commit: 2 })])
    hand.elect(1, (one) => one.kind === 'append')
    expect(hand.raft(1)).toMatchObject({ role: 'leader', commit: 2, lastIndex: 4 })
    hand.raft(1).snapshotArrived({ index: 3, term: 1, configuration })
    hand.flush(1)
    expect(hand.raft(1)).toMatchObject({ role: 'leader', commit: 3, lastIndex: 4 })
    expect(hand.take()).toEqual([])
  })

  it('stops a leader that lacks it: something committed is lost', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.elect(1)
    expect(() => hand.raft(1).snapshotArrived({ index: 9, term: 1, configuration })).toThrow(/snapshot as leader/)
  })
})

describe('a member that has a snapshot of the leader', () => {
  it('offers it to peers even if its log had it already, rather than ask for another one', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.give([message({ kind: 'append', from: 2, to: 1, term: 1, entries, commit: 2 })])
    hand.raft(1).snapshotArrived({ index: 3, term: 1, configuration })
    hand.flush(1)
    hand.raft(1).compact(3)
    hand.elect(1, (one) => one.to === 3 || one.from === 3)
    hand.raft(1).beat()
    hand.flush(1)
    const offers: Message[] = []
    hand.settle((one) => one.kind === 'snapshot' && offers.push(one) > 0)
    expect(offers[0]).toMatchObject({ to: 3, snapshot: { index: 3, term: 1 } })
  })

  it('ends the retirement: the member that made it knows of the end of the vote', () => {
    const hand = new Hand([1, 2, 3], plain)
    const change = { transition: 'auto' as const, steps: [{ kind: 'remove' as const, node: 1 }], context: noData }
    const removal = { term: 1, index: 1, kind: 'configuration' as const, change }
    hand.give([message({ kind: 'append', from: 2, to: 1, term: 1, entries: [removal], commit: 1 })])
    expect(hand.raft(1).configuration.voters).toEqual([2, 3])
    // It was added again meanwhile. It stands for election before it hears of a commit index, and wins.
    hand.raft(1).snapshotArrived({ index: 9, term: 1, configuration })
    hand.flush(1)
    hand.elect(1, (one) => one.kind === 'append')
    hand.inbox = []
    expect(hand.raft(1).role).toBe('leader')
    for (const from of [2, 3]) hand.give([message({ kind: 'heartbeatReply', from, to: 1, term: hand.raft(1).term })])
    hand.tick(1)
    expect(hand.raft(1).status.transferee).toBe(0)
  })
})
