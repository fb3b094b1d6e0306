import { describe, expect, test } from 'vitest'
import type { ClusterResponse, Role } from '../../src/api/types.js'
import { afterPoll, leaderOf, rates, roleText, SAMPLES_MAX } from '../../src/model/members.js'

const NAMES = ['n1', 'n2', 'n3']

function statusOf(member: string, role: Role, term: number, applied: number, names = NAMES): ClusterResponse {
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
const responses = (...all: ClusterResponse[]) => all.map((status) => ({ name: status.member, status, rttMs: 1 }))
const silent = (name: string) => ({ name, status: undefined, rttMs: 1 })

describe('afterPoll', () => {
  test('lists all members from one response, and computes the lag from the highest commit index', () => {
    const first = afterPoll([], responses(statusOf('n2', 'follower', 1, 90)), 0)
    expect(first.map((row) => [row.name, roleText(row)])).toEqual([
      ['n1', 'no answer'],
      ['n2', 'follower'],
      ['n3', 'no answer'],
    ])
    const all = responses(
      statusOf('n2', 'follower', 1, 95),
      statusOf('n1', 'leader', 1, 100),
      statusOf('n3', 'follower', 1, 100),
    )
    const second = afterPoll(first, all, 1_000)
    expect(second.map((row) => row.samples.at(-1)?.lag)).toEqual([0, 5, 0])
    expect(leaderOf(second)?.member).toBe('n1')
  })

  test('drops a leader that stops responding, and prefers the leader of the highest term', () => {
    const rows = afterPoll([], responses(statusOf('n1', 'leader', 1, 9), statusOf('n2', 'follower', 1, 9)), 0)
    const after = afterPoll(
      rows,
      [silent('n1'), ...responses(statusOf('n2', 'leader', 2, 12), statusOf('n3', 'follower', 2, 12))],
      1,
    )
    expect(after.map(roleText)).toEqual(['no answer', 'leader', 'follower'])
    expect(after[0]).toMatchObject({ lastSeen: 0, status: { term: 1 } })
    expect(after[0]?.samples.map((sample) => sample.lag)).toEqual([0, undefined])
    const both = afterPoll(after, responses(statusOf('n1', 'leader', 1, 9), statusOf('n2', 'leader', 2, 12)), 2)
    expect(leaderOf(both)?.member).toBe('n2')
    const none = afterPoll(both, NAMES.map(silent), 3)
    expect([none.length, leaderOf(none)]).toEqual([3, undefined])
  })

  test('removes members that the cluster no longer lists, and bounds the samples', () => {
    let rows = afterPoll([], responses(statusOf('n1', 'leader', 1, 1)), 0)
    for (let i = 1; i < SAMPLES_MAX + 20; i++) {
      rows = afterPoll(rows, responses(statusOf('n1', 'leader', 1, i * 2, ['n1', 'n2'])), i * 1000)
    }
    expect(rows.map((row) => row.name)).toEqual(['n1', 'n2'])
    expect(rows[0]?.samples).toHaveLength(SAMPLES_MAX)
    expect(rates(rows[0]?.samples ?? []).every((rate) => rate === 2)).toBe(true)
    expect(rates(rows[1]?.samples ?? []).every((rate) => rate === undefined)).toBe(true)
    const { members: _, ...alone } = statusOf('n1', 'leader', 1, 5)
    expect(afterPoll([], responses(alone), 0).map((row) => [row.name, row.url])).toEqual([['n1', 'http://n1']])
  })
})
