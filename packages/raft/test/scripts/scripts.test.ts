import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { filesIn, HAS_TESTDATA, textOf, WHERE } from '../testdata.js'
import { judge, type Level } from './judge.js'

interface Expectations {
  readonly scripts: Record<string, { readonly level: Level; readonly reason: string }>
}

const expectations = JSON.parse(readFileSync(new URL('./expectations.json', import.meta.url), 'utf8')) as Expectations
const files = filesIn('etcd-io+raft/testdata')

describe.skipIf(!HAS_TESTDATA)(`interaction scripts of another core${WHERE}`, () => {
  it('are all here', () => expect(files.length).toBe(22))
  for (const file of files) {
    const name = file.split('/').pop() as string
    const level = expectations.scripts[name]?.level ?? 'trace'
    it(`${name} at level ${level}`, () => {
      const verdict = judge(textOf(file), level)
      expect(verdict).toMatchObject({ ok: true })
    })
    it(`${name} at level state`, () => expect(judge(textOf(file), 'state')).toMatchObject({ ok: true }))
  }
})

describe('the judge itself', () => {
  it('sees a message that should not be there', () => {
    const text =
      'add-nodes 1 voters=(1) index=3\n----\nok\n\ncampaign 1\n----\nok\n\nprocess-ready 1\n----\nReady MustSync=true:\nLead:0 State:StateCandidate\nHardState Term:1 Vote:1 Commit:3\nMessages:\n1->2 MsgVote Term:1 Log:1/3\n'
    expect(judge(text, 'trace')).toMatchObject({ ok: false, line: 14 })
  })
  it('sees a wrong state', () => {
    const text = 'add-nodes 1 voters=(1) index=3\n----\nok\n\nraft-state\n----\n1: StateLeader (Voter) Term:1 Lead:1\n'
    expect(judge(text, 'state')).toMatchObject({ ok: false, line: 7 })
  })
})
