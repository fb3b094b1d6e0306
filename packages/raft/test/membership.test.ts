import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  changeMembers,
  enterJoint,
  leaveJoint,
  MembershipError,
  noMembers,
  simpleChange,
  type Tracked,
} from '../src/membership.js'
import { Progress } from '../src/progress.js'
import type { ConfigurationStep } from '../src/types.js'
import { argument, parseCases } from './scripts/datadriven.js'
import { progressText } from './scripts/describe.js'
import { parseSteps } from './scripts/world.js'
import { filesIn, HAS_TESTDATA, textOf, WHERE } from './testdata.js'

function text({ members, progress }: Tracked): string {
  const list = (ids: ReadonlySet<number>) => `(${[...ids].sort((a, b) => a - b).join(' ')})`
  const outgoing = members.votersOutgoing.size > 0 ? `&&${list(members.votersOutgoing)}` : ''
  const learners = members.learners.size > 0 ? ` learners=${list(members.learners)}` : ''
  const next = members.learnersNext.size > 0 ? ` learners_next=${list(members.learnersNext)}` : ''
  const peers = [...progress].sort(([a], [b]) => a - b).map(([id, one]) => `${id}: ${progressText(one)}`)
  return [
    `voters=${list(members.voters)}${outgoing}${learners}${next}${members.autoLeave ? ' autoleave' : ''}`,
    ...peers,
  ].join('\n')
}

describe.skipIf(!HAS_TESTDATA)(`membership cases of another core${WHERE}`, () => {
  let cases = 0
  for (const file of filesIn('etcd-io+raft/confchange/testdata')) {
    it(file, () => {
      let tracked: Tracked = { members: noMembers(), progress: new Map() }
      let counter = 0
      for (const one of parseCases(textOf(file))) {
        cases++
        const track = (isLearner: boolean) => new Progress(Math.max(counter, 1), isLearner, 10, 0)
        const steps = parseSteps(one.input)
        let got: string
        try {
          if (one.command === 'simple') tracked = simpleChange(tracked, steps, track)
          else if (one.command === 'enter-joint')
            tracked = enterJoint(tracked, argument(one, 'autoleave')?.[0] === 'true', steps, track)
          else tracked = leaveJoint(tracked, track)
          got = text(tracked)
        } catch (error) {
          if (!(error instanceof MembershipError)) throw error
          got = error.message
        }
        counter++
        expect(`${one.line}\n${got}`).toBe(`${one.line}\n${one.expected.join('\n').trimEnd()}`)
      }
    })
  }
  it('are 58', () => expect(cases).toBe(58))
})

describe('membership', () => {
  const step: fc.Arbitrary<ConfigurationStep> = fc.record({
    kind: fc.constantFrom('addVoter' as const, 'addLearner' as const, 'remove' as const, 'update' as const),
    node: fc.integer({ min: 1, max: 5 }),
  })

  it('keeps the majorities of neighbouring configurations in touch, and never loses its voters', () => {
    const change = fc.record({
      transition: fc.constantFrom('auto' as const, 'jointImplicit' as const, 'jointExplicit' as const),
      steps: fc.array(step, { maxLength: 4 }),
      context: fc.constant(new Uint8Array(0)),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        const track = (isLearner: boolean) => new Progress(1, isLearner, 10, 0)
        let tracked = simpleChange(
          { members: noMembers(), progress: new Map() },
          [{ kind: 'addVoter', node: 1 }],
          track,
        )
        for (const one of changes) {
          const before = tracked
          const shown = text(before)
          try {
            tracked = changeMembers(tracked, one, track)
          } catch (error) {
            if (!(error instanceof MembershipError)) throw error
            expect(text(before)).toBe(shown)
            continue
          }
          expect(text(before), 'the configuration before the change was touched').toBe(shown)
          expect(tracked.members.voters.size).toBeGreaterThan(0)
          expect(quorumsMeet(before, tracked)).toBe(true)
        }
      }),
    )
  })
})

/** Brute force: is there a pair of disjoint sets, one deciding in each configuration? */
function quorumsMeet(a: Tracked, b: Tracked): boolean {
  const decides = (one: Tracked, set: number) =>
    [one.members.voters, one.members.votersOutgoing].every(
      (half) => half.size === 0 || [...half].filter((id) => (set >> id) & 1).length > half.size / 2,
    )
  for (let set = 0; set < 64; set++) if (decides(a, set) && decides(b, ~set & 63)) return false
  return true
}
