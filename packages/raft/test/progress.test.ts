import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Inflights } from '../src/inflights.js'
import { Progress } from '../src/progress.js'
import { Hand } from './hand.js'
import { viewOf } from './message-view.js'

describe('appends in flight', () => {
  it('behave like a plain list of (index, bytes), whatever is added and freed', () => {
    const step = fc.oneof(
      fc.record({ add: fc.integer({ min: 1, max: 3 }), bytes: fc.nat(10) }),
      fc.record({ free: fc.nat(100) }),
      fc.record({ reset: fc.constant(true) }),
    )
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 120 }),
        fc.integer({ min: 1, max: 40 }),
        fc.nat(60),
        (steps, max, bytesMax) => {
          const inflights = new Inflights(max, bytesMax)
          let twin: { index: number; bytes: number }[] = []
          let index = 0
          for (const one of steps) {
            if ('add' in one) {
              if (inflights.full) continue
              index += one.add
              inflights.add(index, one.bytes)
              twin.push({ index, bytes: one.bytes })
            } else if ('free' in one) {
              inflights.freeUpTo(one.free)
              twin = twin.filter((item) => item.index > one.free)
            } else {
              inflights.reset()
              twin = []
            }
            const bytes = twin.reduce((sum, item) => sum + item.bytes, 0)
            expect(inflights.count).toBe(twin.length)
            expect(inflights.full).toBe(twin.length >= max || (bytesMax > 0 && bytes >= bytesMax))
          }
        },
      ),
    )
  })
})

const progressAt = (match: number, next: number): Progress => {
  const progress = new Progress(next, false, 2, 0)
  progress.match = match
  return progress
}

describe('the progress of a peer', () => {
  it('probes one append at a time', () => {
    const progress = progressAt(0, 5)
    progress.sentEntries(0, 0)
    expect(progress.isPaused).toBe(false)
    progress.sentEntries(2, 10)
    expect(progress.isPaused).toBe(true)
    expect(progress.next).toBe(5)
    progress.maybeUpdate(6)
    expect(progress).toMatchObject({ match: 6, next: 7, isPaused: false })
  })

  it('sends ahead while it replicates, up to the bound', () => {
    const progress = progressAt(4, 5)
    progress.becomeReplicate()
    progress.sentEntries(3, 10)
    expect(progress).toMatchObject({ next: 8, isPaused: false })
    progress.sentEntries(1, 10)
    expect(progress).toMatchObject({ next: 9, isPaused: true })
    progress.inflights.freeUpTo(7)
    expect(progress.inflights.count).toBe(1)
  })

  it('goes back on a refusal, unless that is stale', () => {
    const replicating = progressAt(4, 5)
    replicating.becomeReplicate()
    replicating.sentEntries(3, 10)
    expect(replicating.maybeDecrease(4, 2)).toBe(false)
    expect(replicating.maybeDecrease(7, 2)).toBe(true)
    expect(replicating.next).toBe(5)

    const probing = progressAt(2, 9)
    expect(probing.maybeDecrease(7, 5)).toBe(false)
    expect(probing.maybeDecrease(8, 5)).toBe(true)
    expect(probing.next).toBe(6)
    expect(probing.maybeDecrease(5, 0)).toBe(true)
    expect(probing.next, 'never below what is acknowledged').toBe(3)
  })

  it('waits for a snapshot, and continues after it', () => {
    const progress = progressAt(2, 9)
    progress.becomeSnapshot(20)
    expect(progress).toMatchObject({ isPaused: true, next: 21 })
    progress.becomeProbe()
    expect(progress).toMatchObject({ state: 'probe', next: 21, pendingSnapshot: 0, isPaused: false })
    const failed = progressAt(2, 9)
    failed.becomeSnapshot(20)
    failed.pendingSnapshot = 0
    failed.becomeProbe()
    expect(failed.next).toBe(3)
  })

  it('tells a commit index only to whom it is news', () => {
    const progress = progressAt(4, 5)
    progress.becomeReplicate()
    progress.sent(2)
    expect(progress.canBumpCommit(2)).toBe(false)
    expect(progress.canBumpCommit(3)).toBe(true)
    progress.sent(4)
    expect(progress.canBumpCommit(9), 'it cannot commit what it was not sent').toBe(false)
  })

  it('stays in order under any inputs: match below next, next never below what was acknowledged', () => {
    const input = fc.tuple(
      fc.constantFrom('ack', 'refuse', 'send', 'probe', 'snapshot', 'replicate'),
      fc.nat(30),
      fc.nat(30),
    )
    fc.assert(
      fc.property(fc.array(input, { maxLength: 60 }), (inputs) => {
        const progress = new Progress(10, false, 3, 0)
        for (const [kind, a, b] of inputs) {
          const before = progress.match
          if (kind === 'ack') progress.maybeUpdate(a)
          else if (kind === 'refuse') progress.maybeDecrease(a, b)
          else if (kind === 'send' && !progress.isPaused && !progress.inflights.full) progress.sentEntries(a % 4, b)
          else if (kind === 'probe') progress.becomeProbe()
          else if (kind === 'replicate') progress.becomeReplicate()
          else if (kind === 'snapshot' && a > progress.match) progress.becomeSnapshot(a)
          expect(progress.match).toBeGreaterThanOrEqual(before)
          expect(progress.match).toBeLessThan(progress.next)
          expect(progress.inflights.count).toBeLessThanOrEqual(3)
        }
      }),
    )
  })
})

describe('an acknowledgement of nothing, in the present term', () => {
  it('which answers an append of an earlier term of the same leader does not make it send everything again', () => {
    const hand = new Hand([1, 2, 3])
    const lead = (id: number, lost?: Parameters<Hand['settle']>[0]): void => {
      for (const other of [1, 2, 3]) hand.raft(other).forgetLeader()
      hand.elect(id, lost)
      expect(hand.raft(id).role).toBe('leader')
    }
    lead(1)
    for (let i = 0; i < 20; i++) hand.propose(1, `${i}`)
    const late = hand.inbox.filter((one) => one.kind === 'append' && one.to === 3).slice(0, 1)
    hand.settle()
    lead(2)
    // Leads once more, and does not know yet where the log of 3 meets its own.
    lead(1, (one) => one.kind === 'append' && one.to === 3)
    const before = hand.raft(1).lastIndex
    expect(hand.raft(1).status.progress.get(3)).toMatchObject({ state: 'probe', match: 0, next: before })
    hand.give(late)
    const answers = hand.take((one) => one.kind === 'appendReply')
    expect(answers).toMatchObject([{ from: 3, term: hand.raft(1).term, index: 0, reject: false }])
    hand.give(answers)
    expect(hand.take((one) => one.to === 3).flatMap((one) => viewOf(one).entries)).toEqual([])
    expect(hand.raft(1).status.progress.get(3)).toMatchObject({ state: 'probe', match: 0, next: before })
    hand.tick(1, 10)
    hand.settle()
    expect(hand.raft(1).status.progress.get(3)).toMatchObject({ state: 'replicate', match: before })
  })

  it('and one of what is known already, from before a snapshot, does not make it send the snapshot again', () => {
    const progress = progressAt(2, 9)
    progress.becomeSnapshot(20)
    progress.becomeProbe()
    expect(progress.isMetAt(2)).toBe(false)
    expect(progressAt(2, 3).isMetAt(2)).toBe(true)
  })
})
