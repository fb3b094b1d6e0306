import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jointCommitted, jointVote, majorityCommitted, majorityVote, NO_LIMIT } from '../src/quorum.js'
import { argument, type Case, parseCases } from './scripts/datadriven.js'
import { filesIn, HAS_TESTDATA, textOf, WHERE } from './testdata.js'

const VERDICTS = { won: 'VoteWon', pending: 'VotePending', lost: 'VoteLost' }

function numbers(one: Case, key: string): number[] {
  return (argument(one, key) ?? []).filter((word) => word !== '' && word !== 'zero').map(Number)
}

/** The reports of a case, in the order in which voters first appear over both halves. */
function reports<T>(one: Case, key: string, read: (word: string) => T): Map<number, T> {
  const ids = [...new Set([...numbers(one, 'cfg'), ...numbers(one, 'cfgj')])]
  const words = argument(one, key) ?? []
  const map = new Map<number, T>()
  ids.forEach((id, i) => {
    const word = words[i]
    if (word !== undefined && word !== '_') map.set(id, read(word))
  })
  return map
}

function answer(one: Case): string {
  const voters = new Set(numbers(one, 'cfg'))
  const outgoing = new Set(numbers(one, 'cfgj'))
  if (one.command === 'vote') {
    const votes = reports(one, 'votes', (word) => word === 'y')
    const verdict = jointVote(voters, outgoing, (id) => votes.get(id))
    expect(jointVote(outgoing, voters, (id) => votes.get(id))).toBe(verdict)
    return VERDICTS[verdict]
  }
  const indexes = reports(one, 'idx', Number)
  const index = jointCommitted(voters, outgoing, (id) => indexes.get(id))
  expect(jointCommitted(outgoing, voters, (id) => indexes.get(id))).toBe(index)
  return index === NO_LIMIT ? '∞' : String(index)
}

describe.skipIf(!HAS_TESTDATA)(`quorum cases of another core${WHERE}`, () => {
  let cases = 0
  for (const file of filesIn('etcd-io+raft/quorum/testdata')) {
    it(file, () => {
      for (const one of parseCases(textOf(file))) {
        cases++
        const last = one.expected.filter((line) => line.trim() !== '').pop() as string
        expect(`${one.line}: ${last.replace('<empty majority quorum>', '')}`).toBe(`${one.line}: ${answer(one)}`)
      }
    })
  }
  it('are 127', () => expect(cases).toBe(127))
})

describe('quorums', () => {
  const ids = fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { maxLength: 7 }).map((list) => new Set(list))
  const indexes = fc.dictionary(fc.integer({ min: 1, max: 9 }).map(String), fc.integer({ min: 0, max: 12 }))

  it('commit the highest index that more than half of the voters have', () => {
    fc.assert(
      fc.property(ids, indexes, (voters, reported) => {
        const at = (id: number) => reported[String(id)]
        const has = (index: number) => [...voters].filter((id) => (at(id) ?? 0) >= index).length
        let best = 0
        for (let index = 0; index <= 12; index++) if (has(index) > voters.size / 2) best = index
        expect(majorityCommitted(voters, at)).toBe(voters.size === 0 ? NO_LIMIT : best)
      }),
    )
  })

  it('decide a vote exactly when the missing votes cannot change it', () => {
    fc.assert(
      fc.property(ids, fc.dictionary(fc.integer({ min: 1, max: 9 }).map(String), fc.boolean()), (voters, cast) => {
        const vote = (id: number) => cast[String(id)]
        const won = (all: (id: number) => boolean) =>
          voters.size === 0 || [...voters].filter(all).length > voters.size / 2
        const best = won((id) => vote(id) ?? true)
        const worst = won((id) => vote(id) ?? false)
        expect(majorityVote(voters, vote)).toBe(worst ? 'won' : best ? 'pending' : 'lost')
      }),
    )
  })
})
