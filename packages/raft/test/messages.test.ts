import { describe, expect, it } from 'vitest'
import { type Entry, type Message, message, type SnapshotMeta } from '../src/index.js'
import { type MessageFields, messageProblem } from '../src/messages.js'
import { Hand } from './hand.js'
import type { MessageView } from './message-view.js'

const entry = (term: number, index: number): Entry => ({ term, index, kind: 'normal', data: new Uint8Array(0) })
const to1 = (fields: Partial<Omit<MessageView, 'snapshot'>> & { snapshot?: SnapshotMeta }): Message =>
  message({ kind: 'append', from: 2, to: 1, term: 3, ...fields } as MessageFields)
const configuration = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }

describe('a message that no correct member sends', () => {
  it.each<[string, Message, RegExp]>([
    ['for another member', to1({ to: 4 }), /for node 4 came to node 1/],
    ['from node 0', to1({ from: 0 }), /from node 0/],
    ['of no term', to1({ term: 0 }), /of term 0/],
    ['of half a term', to1({ term: 1.5 }), /of term 1.5/],
    ['with a hole', to1({ index: 4, logTerm: 1, entries: [entry(1, 6)] }), /entry 6 at place 0 after 4/],
    ['with a falling term', to1({ index: 4, logTerm: 2, entries: [entry(1, 5)] }), /entry 5 of term 1 after 2/],
    ['with a term to come', to1({ index: 4, logTerm: 2, entries: [entry(4, 5)] }), /entry 5 of term 4/],
    ['with no snapshot', to1({ kind: 'snapshot' }), /without a snapshot/],
    [
      'with a snapshot of nothing',
      to1({ kind: 'snapshot', snapshot: { index: 0, term: 0, configuration } }),
      /without a snapshot/,
    ],
    ['that proposes nothing', to1({ kind: 'propose', term: 0 }), /without entries/],
    ['that proposes in a term', to1({ kind: 'propose', term: 2, entries: [entry(0, 0)] }), /propose of term 2/],
  ])('%s is ignored, with the reason', (_name, wrong, reason) => {
    expect(messageProblem(wrong, 1)).toMatch(reason)
    const hand = new Hand([1, 2, 3])
    const before = hand.raft(1).status
    expect(hand.raft(1).step(wrong)).toMatch(reason)
    expect({ ...hand.raft(1).status, progress: undefined }).toEqual({ ...before, progress: undefined })
    expect(hand.raft(1).hasEffects).toBe(false)
  })

  it('everything that members send each other is right', () => {
    const hand = new Hand([1, 2, 3])
    const seen: Message[] = []
    hand.elect(1, (one) => {
      seen.push(one)
      return false
    })
    hand.propose(1, 'a')
    hand.settle((one) => seen.push(one) < 0)
    expect(seen.length).toBeGreaterThan(8)
    for (const one of seen) expect(messageProblem(one, one.to)).toBeUndefined()
  })
})
