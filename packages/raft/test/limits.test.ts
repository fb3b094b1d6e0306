import { describe, expect, it } from 'vitest'
import { message } from '../src/index.js'
import { Hand } from './hand.js'
import { viewOf } from './message-view.js'

const LIMITS = { uncommittedBytesMax: 10, appendBytesMax: 6, inflightsMax: 2, readsMax: 2 }

function leading(): Hand {
  const hand = new Hand([1, 2, 3], { limits: LIMITS })
  hand.elect(1)
  return hand
}

describe('bounds', () => {
  it('too many bytes that are not applied: proposals are refused, until some are applied', () => {
    const hand = leading()
    expect(hand.propose(1, '12345')).toBe(2)
    expect(hand.propose(1, '12345')).toBe(3)
    expect(hand.propose(1, '1')).toBeUndefined()
    expect(hand.raft(1).lastIndex).toBe(3)
    hand.settle()
    expect(hand.propose(1, '12345')).toBe(4)
  })

  it('one proposal that is larger than the bound is taken when nothing else waits', () => {
    const hand = leading()
    expect(hand.propose(1, '123456789012345')).toBe(2)
    expect(hand.propose(1, '1')).toBeUndefined()
    hand.settle()
    expect(hand.propose(1, '1')).toBe(3)
  })

  it('appends in flight to a silent peer, and bytes in each', () => {
    const hand = leading()
    for (const text of ['123', '456', '789']) {
      hand.propose(1, text)
      hand.settle((one) => one.to === 3)
    }
    const { progress } = hand.raft(1).status
    expect(progress.get(3)?.inflights).toMatchObject({ count: 2, full: true })
    expect(progress.get(2)?.inflights.count).toBe(0)
    hand.give([message({ kind: 'appendReply', from: 3, to: 1, term: 1, index: 2 })])
    const sent = hand.take((one) => one.to === 3 && one.kind === 'append')
    expect(sent.map((one) => viewOf(one).entries.map(({ index }) => index))).toEqual([[4]])
  })

  it('reads that wait', () => {
    const hand = leading()
    expect(hand.raft(1).read(1)).toBe(true)
    expect(hand.raft(1).read(2)).toBe(true)
    expect(hand.raft(1).read(3)).toBe(false)
    for (const context of [1, 2]) expect(hand.raft(2).read(context)).toBe(true)
    expect(hand.raft(2).read(3)).toBe(false)
  })
})

describe('a snapshot on its way', () => {
  /** Node 3 needs a snapshot, and has answered a heartbeat, so that it was sent one. */
  function sending(): Hand {
    const hand = leading()
    const away = (one: { to: number; from: number }) => one.to === 3 || one.from === 3
    hand.propose(1, 'a')
    hand.settle(away)
    hand.propose(1, 'b')
    hand.settle(away)
    const { configuration, commit } = hand.raft(1)
    hand.raft(1).snapshotTaken({ index: commit, term: 1, configuration })
    hand.raft(1).compact(commit)
    hand.raft(1).reportUnreachable(3)
    hand.raft(1).beat()
    hand.flush(1)
    hand.settle((one) => one.kind === 'snapshot')
    expect(hand.raft(1).status.progress.get(3)).toMatchObject({ state: 'snapshot', pendingSnapshot: commit })
    return hand
  }

  it('delivered: nothing more is sent before its acknowledgement or a heartbeat', () => {
    const hand = sending()
    hand.raft(1).reportSnapshot(3, true)
    expect(hand.raft(1).status.progress.get(3)).toMatchObject({ state: 'probe', isPaused: true, next: 4 })
    hand.propose(1, 'c')
    expect(hand.take((one) => one.to === 3 && one.kind === 'append')).toEqual([])
  })

  it('failed: it is sent again after a heartbeat', () => {
    const hand = sending()
    hand.raft(1).reportSnapshot(3, false)
    expect(hand.raft(1).status.progress.get(3)).toMatchObject({ state: 'probe', isPaused: true })
    hand.raft(1).beat()
    hand.flush(1)
    hand.settle()
    expect(hand.raft(3).commit).toBe(hand.raft(1).commit)
    expect(hand.raft(1).status.progress.get(3)?.state).toBe('replicate')
  })

  it('a late one, older than what is compacted here, changes nothing', () => {
    const hand = sending()
    hand.raft(1).reportSnapshot(3, false)
    hand.raft(1).beat()
    hand.flush(1)
    hand.settle()
    const { configuration, commit, lastIndex } = hand.raft(1)
    expect(hand.raft(3).status.first).toBe(commit + 1)
    hand.give([message({ kind: 'snapshot', from: 1, to: 3, term: 1, snapshot: { index: 1, term: 1, configuration } })])
    expect(hand.raft(3)).toMatchObject({ commit, lastIndex })
    expect(hand.take().map((one) => [one.kind, viewOf(one).index])).toEqual([['appendReply', commit]])
  })
})
