import { describe, expect, it } from 'vitest'
import { message } from '../src/messages.js'
import { Raft } from '../src/index.js'
import { Hand } from './hand.js'
import { viewOf } from './message-view.js'

const noData = new Uint8Array(0)

describe('a joint configuration', () => {
  it('is left after a failed transfer although nothing else is proposed', () => {
    const hand = new Hand([1, 2, 3, 4], { preVote: false }, [1, 2, 3])
    hand.elect(1)
    const steps = [
      { kind: 'addVoter' as const, node: 4 },
      { kind: 'remove' as const, node: 3 },
    ]
    expect(hand.raft(1).proposeConfiguration({ transition: 'auto', steps, context: noData })).toHaveProperty('index')
    hand.raft(1).transferLeadership(2)
    hand.flush(1)
    hand.settle((one) => one.kind === 'timeoutNow')
    expect(hand.raft(1)).toMatchObject({ role: 'leader', transferee: 2 })
    expect(hand.raft(1).configuration.votersOutgoing).toEqual([1, 2, 3])
    for (let i = 0; i < 25; i++) {
      hand.tick(1)
      hand.settle((one) => one.kind === 'timeoutNow')
    }
    expect(hand.raft(1).configuration).toMatchObject({ voters: [1, 2, 4], votersOutgoing: [] })
  })
})

describe("a follower's reads that are never answered", () => {
  it('make room once the program has given them up', () => {
    const configuration = { voters: [1, 2, 3], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
    const snapshot = { index: 0, term: 0, configuration }
    const hardState = { term: 1, vote: 0, commit: 0 }
    const raft = new Raft({ id: 1, snapshot, hardState, entries: [], random: () => 1, limits: { readsMax: 2 } })
    raft.step(message({ kind: 'heartbeat', from: 2, to: 1, term: 1 }))
    expect([raft.read(1), raft.read(2), raft.read(3)]).toEqual([true, true, false])
    const late = raft.takeEffects().messages.map((one) => viewOf(one).context)
    raft.abandonReads()
    expect(raft.read(4)).toBe(true)
    for (const context of late) {
      raft.step(message({ kind: 'readIndexReply', from: 2, to: 1, term: 1, context, index: 0 }))
    }
    expect(raft.takeEffects().reads).toEqual([])
  })
})
