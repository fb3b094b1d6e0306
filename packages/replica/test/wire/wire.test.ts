import fc from 'fast-check'
import { type Entry, type Message, MESSAGE_KINDS, message as makeMessage } from '@leasehold/raft'
import { describe, expect, it } from 'vitest'
import { readMessage, writeMessage } from '../../src/wire/consensus-messages.js'
import { AcknowledgedMemory } from '../../src/rollback/acknowledged-memory.js'
import { PeerFrames } from '../../src/wire/peer-frames.js'
import { readStatement, writeStatement } from '../../src/wire/statements.js'

const CLUSTER = 'c1'.repeat(16)
/** Terms and indexes have 52 bits. */
const nat = fc.nat({ max: 2 ** 52 })
const nodes = fc.array(nat, { maxLength: 3 })
const configuration = fc.record({
  voters: nodes,
  votersOutgoing: nodes,
  learners: nodes,
  learnersNext: nodes,
  autoLeave: fc.boolean(),
})
const change = fc.record({
  transition: fc.constantFrom('auto' as const, 'jointImplicit' as const, 'jointExplicit' as const),
  steps: fc.array(
    fc.record({
      kind: fc.constantFrom('addVoter', 'addLearner', 'remove', 'update'),
      node: nat,
    }) as fc.Arbitrary<never>,
    { maxLength: 3 },
  ),
  context: fc.uint8Array({ maxLength: 10 }),
})
const entry: fc.Arbitrary<Entry> = fc.oneof(
  fc.record({ term: nat, index: nat, kind: fc.constant('normal' as const), data: fc.uint8Array({ maxLength: 30 }) }),
  fc.record({ term: nat, index: nat, kind: fc.constant('configuration' as const), change }),
)
const fields = fc.record({
  kind: fc.constantFrom(...MESSAGE_KINDS),
  from: fc.constant(7),
  to: fc.constant(9),
  term: nat,
  logTerm: nat,
  index: nat,
  entries: fc.array(entry, { maxLength: 4 }),
  commit: nat,
  reject: fc.boolean(),
  hint: nat,
  context: nat,
  snapshot: fc.record({ index: nat, term: nat, configuration }),
})
const message: fc.Arbitrary<Message> = fields.map((all) => makeMessage(all as never))

describe('frames between members', () => {
  const sender = new PeerFrames(CLUSTER, 7)
  const receiver = new PeerFrames(CLUSTER, 9)

  it('carry every message unchanged', () => {
    fc.assert(
      fc.property(message, (sent) => {
        const frame = receiver.decode(sender.encode('consensus', 9, (writer) => writeMessage(writer, sent)))
        if ('refused' in frame) throw new Error(frame.refused)
        expect(frame).toMatchObject({ kind: 'consensus', from: 7 })
        expect(readMessage(frame.body, frame.from, 9)).toEqual(sent)
      }),
    )
  })

  it('carry every statement about the common history unchanged', () => {
    const id = fc.record({ index: nat, term: nat })
    const committed = fc.record({ index: nat, term: nat, checksum: fc.nat({ max: 2 ** 32 - 1 }) })
    const statement = fc.record({
      requestStart: nat,
      answeredStart: nat,
      committed,
      last: committed,
      evidence: committed,
    })
    const entries = fc.uniqueArray(fc.tuple(nat, id), { selector: ([node]) => node, maxLength: 5 })
    fc.assert(
      fc.property(statement, entries, (sent, acknowledged) => {
        const memory = new AcknowledgedMemory()
        for (const [node, entry] of acknowledged) memory.note(node, entry)
        const bytes = sender.encode('statement', 9, (writer) => writeStatement(writer, { ...sent, memory }))
        const frame = receiver.decode(bytes)
        if ('refused' in frame) throw new Error(frame.refused)
        const kept = acknowledged.filter(([, { index, term }]) => term > 0 || index > 0)
        expect(readStatement(frame.body)).toEqual({ ...sent, acknowledged: kept })
      }),
    )
  })

  it('are rejected when any bit has changed or when truncated anywhere', () => {
    const bytes = sender.encode('stateHash', 9, (writer) => writer.string('hello'))
    for (let at = 0; at < bytes.length; at++) {
      const broken = bytes.slice()
      broken[at] = (broken[at] as number) ^ 8
      expect(receiver.decode(broken)).toEqual({ refused: 'a broken checksum' })
      expect(receiver.decode(bytes.subarray(0, at))).toHaveProperty('refused')
    }
  })

  it('are rejected when they are of another cluster or for another incarnation', () => {
    const nothing = () => {}
    const other = new PeerFrames('d2'.repeat(16), 7)
    expect(receiver.decode(other.encode('consensus', 9, nothing))).toEqual({
      refused: expect.stringMatching(/^cluster d2/),
    })
    expect(receiver.decode(sender.encode('consensus', 8, nothing))).toEqual({
      refused: expect.stringContaining('node 8'),
    })
  })
})
