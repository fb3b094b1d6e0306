import { describe, expect, test } from 'vitest'
import type { ClusterAnswer, Role } from '../../src/api/types.js'
import { afterRound, leaderOf, rates, roleText, SAMPLES_MAX } from '../../src/model/members.js'

const NAMES = ['n1', 'n2', 'n3']

function said(member: string, role: Role, term: number, applied: number, names = NAMES): ClusterAnswer {
  return {
    member,
    role,
    term,
    leader: 'n1',
    leaderUrl: '',
    url: `http://${member}`,
    commitIndex: applied,
    appliedIndex: applied,
    disk: 'ok',
    members: names.map((name) => ({ name, url: `http://${name}`, peer: '', role: 'voter' })),
    cluster: 'c',
    epoch: 1,
  }
}
const told = (...answers: ClusterAnswer[]) => answers.map((answer) => ({ name: answer.member, answer, rttMs: 1 }))
const silent = (name: string) => ({ name, answer: undefined, rttMs: 1 })

describe('rounds of questions to the members', () => {
  test('one answer names all; each tells of itself; lag counts from the highest commit', () => {
    const first = afterRound([], told(said('n2', 'follower', 1, 90)), 0)
    expect(first.map((row) => [row.name, roleText(row)])).toEqual([
      ['n1', 'no answer'],
      ['n2', 'follower'],
      ['n3', 'no answer'],
    ])
    const all = told(said('n2', 'follower', 1, 95), said('n1', 'leader', 1, 100), said('n3', 'follower', 1, 100))
    const second = afterRound(first, all, 1_000)
    expect(second.map((row) => row.samples.at(-1)?.lag)).toEqual([0, 5, 0])
    expect(leaderOf(second)?.member).toBe('n1')
  })

  test('a leader that is silent leads no more; a higher term wins over one that has not heard of it', () => {
    const rows = afterRound([], told(said('n1', 'leader', 1, 9), said('n2', 'follower', 1, 9)), 0)
    const after = afterRound(
      rows,
      [silent('n1'), ...told(said('n2', 'leader', 2, 12), said('n3', 'follower', 2, 12))],
      1,
    )
    expect(after.map(roleText)).toEqual(['no answer', 'leader', 'follower'])
    expect(after[0]).toMatchObject({ heard: 0, said: { term: 1 } })
    expect(after[0]?.samples.map((sample) => sample.lag)).toEqual([0, undefined])
    const both = afterRound(after, told(said('n1', 'leader', 1, 9), said('n2', 'leader', 2, 12)), 2)
    expect(leaderOf(both)?.member).toBe('n2')
    const nobody = afterRound(both, NAMES.map(silent), 3)
    expect([nobody.length, leaderOf(nobody)]).toEqual([3, undefined])
  })

  test('members that were removed go; a service of one is its own member; samples are bounded', () => {
    let rows = afterRound([], told(said('n1', 'leader', 1, 1)), 0)
    for (let i = 1; i < SAMPLES_MAX + 20; i++) {
      rows = afterRound(rows, told(said('n1', 'leader', 1, i * 2, ['n1', 'n2'])), i * 1000)
    }
    expect(rows.map((row) => row.name)).toEqual(['n1', 'n2'])
    expect(rows[0]?.samples).toHaveLength(SAMPLES_MAX)
    expect(rates(rows[0]?.samples ?? []).every((rate) => rate === 2)).toBe(true)
    expect(rates(rows[1]?.samples ?? []).every((rate) => rate === undefined)).toBe(true)
    const { members: _, ...alone } = said('n1', 'leader', 1, 5)
    expect(afterRound([], told(alone), 0).map((row) => [row.name, row.url])).toEqual([['n1', 'http://n1']])
  })
})
