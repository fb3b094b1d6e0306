import { describe, expect, it } from 'vitest'
import type { ConfigurationChange, ConfigurationStep } from '../src/index.js'
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
