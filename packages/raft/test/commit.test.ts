import { describe, expect, it } from 'vitest'
import { type Entry, message, Raft } from '../src/index.js'
import { STANDARD_RULES } from '../src/rules.js'

const configuration = { voters: [1, 2, 3], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
const entry = (term: number, index: number): Entry => ({ term, index, kind: 'normal', data: Uint8Array.of(index) })

/** Node 1, leading term 3 with three entries of earlier terms in its log; nothing of them is committed. */
function leaderWithOldEntries(): Raft {
  const raft = new Raft(
    {
      id: 1,
      snapshot: { index: 0, term: 0, configuration },
      hardState: { term: 2, vote: 0, commit: 0 },
      entries: [entry(1, 1), entry(1, 2), entry(2, 3)],
      random: () => 0,
    },
    { ...STANDARD_RULES, preVote: false },
  )
  raft.campaign()
  write(raft)
  raft.step(message({ kind: 'voteReply', from: 2, to: 1, term: 3 }))
  write(raft)
  expect(raft).toMatchObject({ role: 'leader', term: 3, lastIndex: 4, commit: 0 })
  return raft
}

function write(raft: Raft): void {
  while (raft.hasEffects) {
    const { persist } = raft.takeEffects()
    if (persist !== undefined) raft.persisted(persist.sequence)
  }
}

const acknowledge = (raft: Raft, from: number, index: number) =>
  raft.step(message({ kind: 'appendReply', from, to: 1, term: 3, index }))

describe('the commit rule of the current term (thesis 3.6.2, figure 8)', () => {
  it('entries of earlier terms are not committed by counting, though everybody has them', () => {
    const raft = leaderWithOldEntries()
    for (const index of [1, 2, 3]) {
      acknowledge(raft, 2, index)
      acknowledge(raft, 3, index)
      expect(raft.commit, `after everybody has ${index}`).toBe(0)
    }
  })

  it('they are committed with the first entry of the own term', () => {
    const raft = leaderWithOldEntries()
    acknowledge(raft, 2, 4)
    expect(raft.commit).toBe(4)
  })

  it('the own copy counts only once it is durable', () => {
    const raft = leaderWithOldEntries()
    raft.propose([Uint8Array.of(9)])
    const { persist } = raft.takeEffects()
    acknowledge(raft, 2, 5)
    expect(raft.commit, 'one durable copy of 5, two of 4').toBe(4)
    raft.persisted(persist?.sequence as number)
    expect(raft.commit).toBe(5)
  })
})
