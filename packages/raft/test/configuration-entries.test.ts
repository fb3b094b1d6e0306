import { describe, expect, it } from 'vitest'
import { type ConfigurationChange, type ConfigurationStep, message, Raft } from '../src/index.js'
import { STANDARD_RULES } from '../src/rules.js'
import { Hand } from './hand.js'

const change = (steps: ConfigurationStep[], transition: ConfigurationChange['transition'] = 'auto') => ({
  transition,
  steps,
  context: new Uint8Array(0),
})

function leading(voters: readonly number[]): Hand {
  const hand = new Hand(voters)
  hand.elect(1)
  return hand
}

describe('changes that could not be applied are refused when they are proposed', () => {
  it.each([
    ['the last voter', [1], change([{ kind: 'remove', node: 1 }]), /removed all voters/],
    [
      'all voters at once',
      [1, 2],
      change([
        { kind: 'remove', node: 1 },
        { kind: 'remove', node: 2 },
      ]),
      /removed all voters/,
    ],
    ['the last voter to a learner', [1], change([{ kind: 'addLearner', node: 1 }]), /removed all voters/],
    ['leaving what is not joint', [1], change([]), /no joint configuration/],
  ])('%s', (_name, voters, wanted, reason) => {
    const hand = leading(voters)
    expect(hand.raft(1).proposeConfiguration(wanted)).toEqual({ refused: expect.stringMatching(reason) })
    hand.flush(1)
    hand.settle()
    expect(hand.raft(1).configuration.voters).toEqual(voters)
    expect(hand.propose(1, 'on')).toBeDefined()
  })

  it('a second change before the first is left', () => {
    const hand = leading([1, 2, 3])
    const joint = change([{ kind: 'addLearner', node: 3 }], 'jointExplicit')
    expect(hand.raft(1).proposeConfiguration(joint)).toHaveProperty('index')
    hand.flush(1)
    hand.settle()
    expect(hand.raft(1).configuration.votersOutgoing).toEqual([1, 2, 3])
    expect(hand.raft(1).proposeConfiguration(change([{ kind: 'addVoter', node: 4 }]))).toEqual({
      refused: expect.stringMatching(/must be left first/),
    })
    hand.flush(1)
    hand.settle()
    expect(hand.raft(1).proposeConfiguration(change([], 'jointExplicit'))).toEqual({
      refused: expect.stringMatching(/joint/),
    })
    hand.flush(1)
    hand.settle()
    expect(hand.raft(1).proposeConfiguration(change([]))).toHaveProperty('index')
    hand.flush(1)
    hand.settle()
    expect(hand.raft(2).configuration).toMatchObject({ voters: [1, 2], votersOutgoing: [], learners: [3] })
  })

  it('one that a follower handed on leaves an empty entry, and no change', () => {
    const hand = leading([1, 2])
    const before = hand.raft(1).lastIndex
    hand.raft(2).proposeConfiguration(change([]))
    hand.flush(2)
    hand.settle()
    expect(hand.raft(1).lastIndex).toBe(before + 1)
    expect(hand.raft(1).entry(before + 1)).toMatchObject({ kind: 'normal', data: new Uint8Array(0) })
  })
})

describe('a new leader', () => {
  it('proposes no change before everything that it found in its log is applied', () => {
    const configuration = { voters: [1, 2, 3], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
    const found = change([{ kind: 'addVoter', node: 4 }])
    const raft = new Raft(
      {
        id: 1,
        snapshot: { index: 0, term: 0, configuration },
        hardState: { term: 1, vote: 0, commit: 0 },
        entries: [{ term: 1, index: 1, kind: 'configuration', change: found }],
        random: () => 0,
      },
      { ...STANDARD_RULES, preVote: false },
    )
    const write = () => {
      while (raft.hasEffects) {
        const { persist, committed } = raft.takeEffects()
        for (const entry of committed) {
          if (entry.kind === 'configuration') raft.applyConfiguration(entry.change)
          raft.applied(entry.index)
        }
        if (persist !== undefined) raft.persisted(persist.sequence)
      }
    }
    raft.campaign()
    write()
    raft.step(message({ kind: 'voteReply', from: 2, to: 1, term: 2 }))
    write()
    expect(raft.role).toBe('leader')
    const other = change([{ kind: 'addVoter', node: 5 }])
    expect(raft.proposeConfiguration(other)).toEqual({ refused: expect.stringMatching(/may be pending at index 1/) })
    raft.step(message({ kind: 'appendReply', from: 2, to: 1, term: 2, index: raft.lastIndex }))
    write()
    expect(raft.configuration.voters).toEqual([1, 2, 3, 4])
    expect(raft.proposeConfiguration(other)).toHaveProperty('index')
  })
})

describe('the last other voter', () => {
  it('wins alone after the leader of two has ended its own vote, had a longer log, and forgot both in a restart', () => {
    const hand = leading([1, 2])
    const end = hand.raft(1).proposeConfiguration(change([{ kind: 'addLearner', node: 1 }]))
    hand.propose(1, 'behind it')
    hand.flush(1)
    // Node 2 acknowledges the change alone, and does not hear that it is committed.
    hand.give(hand.take(({ to }) => to === 2).slice(0, 1))
    hand.give(hand.take(({ to }) => to === 1))
    const { index } = end as { index: number }
    expect(hand.raft(1).configuration.voters).toEqual([2])
    expect(hand.raft(2)).toMatchObject({ commit: index - 1, lastIndex: index })
    const disk = hand.disks.get(1) as NonNullable<ReturnType<typeof hand.disks.get>>
    disk.snapshot = { index, term: 1, configuration: hand.raft(1).configuration }
    disk.entries = disk.entries.slice(index)
    hand.inbox = []
    hand.start(1)
    for (let i = 0; i < 100 && hand.raft(2).role !== 'leader'; i++) {
      hand.tick(1)
      hand.tick(2)
      hand.settle()
    }
    expect(hand.raft(2).role).toBe('leader')
    expect(hand.raft(2).configuration).toMatchObject({ voters: [2], learners: [1] })
    expect(hand.raft(1).lastIndex).toBe(hand.raft(2).lastIndex)
  })
})

describe('a member that has ended its own vote', () => {
  /** Node 1 has applied its removal, which node 2 has sent it. */
  function retired(): Hand {
    const hand = new Hand([1, 2, 3], { preVote: false })
    const removal = { term: 1, index: 1, kind: 'configuration' as const, change: change([{ kind: 'remove', node: 1 }]) }
    hand.give([message({ kind: 'append', from: 2, to: 1, term: 1, entries: [removal], commit: 1 })])
    expect(hand.raft(1).configuration.voters).toEqual([2, 3])
    hand.inbox = []
    return hand
  }
  const stands = (hand: Hand): boolean => {
    hand.tick(1, 25)
    return hand.raft(1).role !== 'follower'
  }

  it('may stand for election until it hears that others know', () => {
    expect(stands(retired())).toBe(true)
    const hand = retired()
    hand.give([message({ kind: 'heartbeat', from: 2, to: 1, term: 1, commit: 0 })])
    expect(stands(hand)).toBe(true)
  })

  it('does not stand any more once a leader has sent it that commit index', () => {
    const hand = retired()
    hand.give([message({ kind: 'heartbeat', from: 2, to: 1, term: 1, commit: 1 })])
    expect(stands(hand)).toBe(false)
  })

  it('is a voter like the others when it gets its vote back, and leads without handing over', () => {
    const hand = retired()
    const back = { term: 1, index: 2, kind: 'configuration' as const, change: change([{ kind: 'addVoter', node: 1 }]) }
    const append = { kind: 'append' as const, from: 2, to: 1, term: 1, index: 1, logTerm: 1 }
    hand.give([message({ ...append, entries: [back], commit: 0 })])
    hand.give([message({ kind: 'voteReply', from: 2, to: 1, term: 1 })])
    // It learns of the commit index by a refusal, as a candidate: no leader tells it.
    hand.raft(1).campaign()
    hand.flush(1)
    const { term } = hand.raft(1)
    hand.give([message({ kind: 'voteReply', from: 2, to: 1, term, reject: true, commit: 2, logTerm: 1 })])
    hand.inbox = []
    expect(hand.raft(1).configuration.voters).toEqual([1, 2, 3])
    hand.elect(1, (one) => one.kind === 'append')
    expect(hand.raft(1).role).toBe('leader')
    for (const from of [2, 3]) hand.give([message({ kind: 'heartbeatReply', from, to: 1, term: hand.raft(1).term })])
    hand.tick(1)
    expect(hand.raft(1).status.transferee).toBe(0)
  })
})
