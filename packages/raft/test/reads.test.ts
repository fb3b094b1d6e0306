import { describe, expect, it } from 'vitest'
import { type Message, message, Raft } from '../src/index.js'
import { ForwardedReads, ReadRounds } from '../src/reads.js'
import { viewOf } from './message-view.js'

describe('rounds of reads', () => {
  const quorum = (acks: ReadonlySet<number>) => acks.size >= 2

  it('are confirmed by answers to their own or a later heartbeat, oldest first', () => {
    const rounds = new ReadRounds(10)
    const first = rounds.open(5, [{ from: 1, context: 100 }], 1)
    const second = rounds.open(7, [{ from: 1, context: 200 }], 1)
    rounds.acknowledge(first, 2)
    expect(rounds.takeConfirmed(quorum)).toMatchObject([{ index: 5, reads: [{ from: 1, context: 100 }] }])
    expect(rounds.takeConfirmed(quorum)).toEqual([])
    rounds.acknowledge(second, 3)
    expect(rounds.takeConfirmed(quorum).map(({ index }) => index)).toEqual([7])
    expect(rounds.newest).toBe(0)
  })

  it('an answer to the last one confirms all', () => {
    const rounds = new ReadRounds(10)
    for (let i = 0; i < 3; i++) rounds.open(i, [{ from: 1, context: i }], 1)
    rounds.acknowledge(rounds.newest, 2)
    expect(rounds.takeConfirmed(quorum).map(({ index }) => index)).toEqual([0, 1, 2])
  })

  it('the same member twice is one member', () => {
    const rounds = new ReadRounds(10)
    const number = rounds.open(1, [{ from: 1, context: 1 }], 1)
    rounds.acknowledge(number, 1)
    rounds.acknowledge(number, 1)
    expect(rounds.takeConfirmed(quorum)).toEqual([])
  })

  it('are bounded, early ones included', () => {
    const rounds = new ReadRounds(2)
    rounds.wait({ from: 1, context: 1 })
    expect(rounds.full).toBe(false)
    rounds.open(1, [{ from: 2, context: 1 }], 1)
    expect(rounds.full).toBe(true)
    expect(rounds.dropAll()).toHaveLength(2)
    expect(rounds.full).toBe(false)
  })
})

describe('reads that a follower hands on', () => {
  it('are answered once, by their own number', () => {
    const handed = new ForwardedReads(10, () => 3)
    const number = handed.ask(7)
    expect(handed.answer(number + 1)).toBeUndefined()
    expect(handed.answer(number)).toBe(7)
    expect(handed.answer(number)).toBeUndefined()
  })

  it('are bounded, and dropped together', () => {
    const handed = new ForwardedReads(2, () => 0)
    handed.ask(1)
    handed.ask(2)
    expect(handed.full).toBe(true)
    expect(handed.dropAll()).toEqual([1, 2])
    expect(handed.full).toBe(false)
  })

  it('stay safe integers for the largest draw', () => {
    const handed = new ForwardedReads(1, (limit) => limit - 1)
    expect(Number.isSafeInteger(handed.ask(1) + 2 ** 40)).toBe(true)
  })

  /** A follower of node 2, in term 1. */
  function follower(draw: number): Raft {
    const configuration = { voters: [1, 2, 3], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
    const raft = new Raft({
      id: 1,
      snapshot: { index: 0, term: 0, configuration },
      hardState: { term: 1, vote: 0, commit: 0 },
      entries: [],
      random: (limit) => draw % limit,
    })
    raft.step(message({ kind: 'heartbeat', from: 2, to: 1, term: 1 }))
    return raft
  }

  const asked = (raft: Raft) => {
    const question = raft.takeEffects().messages.find(({ kind }) => kind === 'readIndex')
    return viewOf(question as Message).context
  }

  it('a late answer to an earlier life of the follower answers nothing', () => {
    const before = follower(1)
    expect(before.read(1)).toBe(true)
    const old = message({ kind: 'readIndexReply', from: 2, to: 1, term: 1, context: asked(before), index: 0 })

    const after = follower(2)
    expect(after.read(1)).toBe(true)
    const number = asked(after)
    after.step(old)
    expect(after.takeEffects().reads).toEqual([])
    after.step(message({ kind: 'readIndexReply', from: 2, to: 1, term: 1, context: number, index: 9 }))
    expect(after.takeEffects().reads).toEqual([{ context: 1, index: 9 }])
  })

  it('are lost when the term moves on', () => {
    const raft = follower(1)
    raft.read(5)
    const number = asked(raft)
    raft.step(message({ kind: 'heartbeat', from: 3, to: 1, term: 2 }))
    expect(raft.takeEffects().readsLost).toEqual([5])
    raft.step(message({ kind: 'readIndexReply', from: 2, to: 1, term: 2, context: number, index: 9 }))
    expect(raft.takeEffects().reads).toEqual([])
  })
})
