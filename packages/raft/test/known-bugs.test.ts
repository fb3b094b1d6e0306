import { describe, expect, it } from 'vitest'
import type { Append } from '../src/messages.js'
import { message, type Message, Raft, RaftInvariantError } from '../src/index.js'
import { Hand } from './hand.js'

/** The numbers are those of docs/internals/raft-bugs.md: bugs that other cores have had, each in one exact order of events. */
const plain = { preVote: false, checkQuorum: false }
const noData = new Uint8Array(0)

function append(fields: Partial<Append> & { to: number; from: number }): Message {
  return message({ kind: 'append', ...fields })
}

describe('elections and votes', () => {
  it('1: a vote leaves only after it is durable, and is kept over a crash', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.autoWrite = false
    hand.give([message({ kind: 'vote', from: 2, to: 1, term: 5, index: 0 })])
    expect(hand.inbox).toEqual([])
    hand.write(1)
    expect(hand.inbox).toMatchObject([{ kind: 'voteReply', to: 2, reject: false }])
    hand.autoWrite = true
    hand.start(1)
    hand.inbox = []
    hand.give([message({ kind: 'vote', from: 3, to: 1, term: 5, index: 9, logTerm: 4 })])
    expect(hand.take()).toMatchObject([{ kind: 'voteReply', to: 3, reject: true }])
  })

  it('1: a candidate asks for votes only when its term is durable, and does not stand in it again', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.elect(2)
    hand.autoWrite = false
    // Node 1 has acknowledged nothing of this, and loses it with its candidacy.
    hand.propose(2, 'a')
    hand.write(2)
    hand.settle((one) => one.to !== 1 || one.kind !== 'append')
    hand.raft(1).campaign()
    hand.flush(1)
    const early = hand.take((one) => one.kind === 'vote')
    hand.give(early)
    hand.write(2)
    hand.write(3)
    const votes = hand.take((one) => one.kind === 'voteReply')
    hand.autoWrite = true
    hand.start(1)
    hand.raft(1).campaign()
    hand.flush(1)
    hand.inbox = []
    // What was granted to the longer log of before the crash must not elect the shorter one.
    hand.give(votes)
    expect(hand.raft(1)).toMatchObject({ role: 'candidate', lastIndex: 1 })
    expect(early).toEqual([])
  })

  it('2: a step down within the term keeps the vote', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.give([message({ kind: 'vote', from: 2, to: 1, term: 3 })])
    hand.give([append({ from: 2, to: 1, term: 3 })])
    expect(hand.raft(1).status.vote).toBe(2)
    hand.inbox = []
    hand.give([message({ kind: 'vote', from: 3, to: 1, term: 3, index: 9, logTerm: 3 })])
    expect(hand.take()).toMatchObject([{ reject: true }])
  })

  it('3: a vote that arrives twice counts once', () => {
    const hand = new Hand([1, 2, 3, 4, 5], plain)
    hand.raft(1).campaign()
    hand.flush(1)
    const vote = message({ kind: 'voteReply', from: 2, to: 1, term: 1 })
    hand.give([vote, vote, vote])
    expect(hand.raft(1).role).toBe('candidate')
  })

  it('4: votes of an earlier term do not count', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.raft(1).campaign()
    hand.flush(1)
    hand.raft(1).campaign()
    hand.flush(1)
    expect(hand.raft(1).term).toBe(2)
    hand.give([
      message({ kind: 'voteReply', from: 2, to: 1, term: 1 }),
      message({ kind: 'voteReply', from: 3, to: 1, term: 1 }),
    ])
    expect(hand.raft(1).role).toBe('candidate')
  })

  it('5: logs are compared by term first, then by index', () => {
    for (let ourTerm = 0; ourTerm < 4; ourTerm++) {
      for (let ourIndex = 0; ourIndex < 4; ourIndex++) {
        for (let term = 0; term < 4; term++) {
          for (let index = 0; index < 4; index++) {
            const configuration = {
              voters: [1, 2, 3],
              votersOutgoing: [],
              learners: [],
              learnersNext: [],
              autoLeave: false,
            }
            const raft = new Raft({
              id: 1,
              snapshot: { index: ourIndex, term: ourTerm, configuration },
              hardState: { term: 4, vote: 0, commit: ourIndex },
              entries: [],
              random: () => 0,
              ...plain,
            })
            raft.step(message({ kind: 'vote', from: 2, to: 1, term: 5, index, logTerm: term }))
            const granted = term > ourTerm || (term === ourTerm && index >= ourIndex)
            expect(raft.takeEffects().gated, `${term}/${index} asks ${ourTerm}/${ourIndex}`).toMatchObject([
              { reject: !granted },
            ])
          }
        }
      }
    }
  })

  it('6, 14: members that time out together elect a leader within few rounds', () => {
    for (let seed = 1; seed <= 300; seed++) {
      let state = seed
      const random = (limit: number) => {
        state = (Math.imul(state, 1103515245) + 12345) >>> 0
        return (state >>> 8) % limit
      }
      const hand = new Hand([1, 2], { random })
      let ticks = 0
      while (![1, 2].some((id) => hand.raft(id).role === 'leader') && ticks++ < 400) {
        for (const id of [1, 2]) hand.raft(id).tick()
        for (const id of [1, 2]) hand.flush(id)
        hand.settle()
      }
      expect(ticks, `seed ${seed}`).toBeLessThan(400)
    }
  })

  it('7, 10: a member that was partitioned does not disturb a leader, and rejoins', () => {
    const hand = new Hand([1, 2, 3])
    hand.elect(1)
    const away = (one: Message) => one.to === 3 || one.from === 3
    for (let i = 0; i < 200; i++) {
      for (const id of [1, 2, 3]) hand.tick(id)
      hand.settle(away)
    }
    const term = hand.raft(1).term
    for (let i = 0; i < 30; i++) {
      for (const id of [1, 2, 3]) hand.tick(id)
      hand.settle()
    }
    expect(hand.raft(1)).toMatchObject({ role: 'leader', term })
    expect(hand.raft(3).leader).toBe(1)
  })

  it('11: a pre-vote that is granted late changes nothing', () => {
    const hand = new Hand([1, 2, 3])
    hand.raft(1).campaign()
    hand.flush(1)
    hand.give(hand.take())
    const late = hand.take((one) => one.from === 3)
    hand.settle()
    expect(hand.raft(1).role).toBe('leader')
    hand.give(late)
    expect(hand.raft(1)).toMatchObject({ role: 'leader', term: 1 })
  })

  it('12: a transfer gets past stickiness, even with a heartbeat in between', () => {
    const hand = new Hand([1, 2, 3])
    hand.elect(1)
    hand.raft(1).transferLeadership(2)
    hand.flush(1)
    hand.raft(1).beat()
    hand.flush(1)
    const beats = hand.take((one) => one.kind === 'heartbeat')
    hand.give(hand.take((one) => one.kind === 'timeoutNow'))
    hand.give(beats)
    hand.settle()
    expect(hand.raft(2).role).toBe('leader')
  })

  it('12: a transfer that fails is abandoned, and proposals are accepted again', () => {
    const hand = new Hand([1, 2, 3], { checkQuorum: false })
    hand.elect(1)
    hand.raft(1).transferLeadership(2)
    hand.flush(1)
    hand.inbox = []
    expect(hand.propose(1, 'x')).toBeUndefined()
    hand.tick(1, 10)
    expect(hand.propose(1, 'y')).toBeDefined()
  })

  it('13: leadership is never handed to a learner or a stranger', () => {
    const hand = new Hand([1, 2, 3], {}, [1, 2], [3])
    hand.elect(1)
    for (const to of [3, 9]) {
      hand.raft(1).transferLeadership(to)
      expect(hand.raft(1).status.transferee).toBe(0)
    }
  })

  it('53, 54: a learner votes when asked, and never stands for election', () => {
    const hand = new Hand([1, 2, 3], {}, [1, 2], [3])
    hand.tick(3, 100)
    expect(hand.raft(3)).toMatchObject({ role: 'follower', term: 0 })
    hand.inbox = []
    hand.give([message({ kind: 'vote', from: 2, to: 3, term: 4, index: 0 })])
    expect(hand.take()).toMatchObject([{ kind: 'voteReply', reject: false }])
  })
})

describe('replication and commit', () => {
  it('15: an entry of an earlier term is not committed by counting (figure 8)', () => {
    const hand = new Hand([1, 2, 3, 4, 5], plain)
    hand.elect(1)
    const only =
      (...ids: number[]) =>
      (one: Message) =>
        !ids.includes(one.to) || !ids.includes(one.from)
    hand.propose(1, 'old')
    hand.settle(only(1, 2))
    expect(hand.raft(1).commit).toBe(1)
    hand.elect(5, (one) => only(3, 4, 5)(one) || one.kind === 'append')
    hand.propose(5, 'other')
    hand.inbox = []
    hand.raft(1).step(message({ kind: 'vote', from: 5, to: 1, term: 2, index: 0 }))
    hand.flush(1)
    hand.inbox = []
    hand.elect(
      1,
      (one) => only(1, 2, 3)(one) || (one.kind === 'append' && one.entries.some((entry) => entry.term === 3)),
    )
    expect(hand.raft(1)).toMatchObject({ role: 'leader', term: 3, commit: 1 })
  })

  it('16: a follower commits only what the append covers, not its stale tail', () => {
    const hand = new Hand([1, 2, 3], plain)
    const entries = [1, 2, 3, 4].map((index) => ({ term: 1, index, kind: 'normal' as const, data: noData }))
    hand.give([append({ from: 2, to: 1, term: 1, entries })])
    hand.give([append({ from: 3, to: 1, term: 2, index: 1, logTerm: 1, commit: 4 })])
    expect(hand.raft(1).commit).toBe(1)
  })

  it('17: an append that was overtaken does not cut what is acknowledged', () => {
    const hand = new Hand([1, 2, 3], plain)
    const entries = [1, 2, 3, 4, 5].map((index) => ({ term: 1, index, kind: 'normal' as const, data: noData }))
    hand.give([
      append({ from: 2, to: 1, term: 1, entries }),
      append({ from: 2, to: 1, term: 1, entries: entries.slice(0, 3) }),
    ])
    expect(hand.raft(1).lastIndex).toBe(5)
  })

  it('18: what follows a conflict is cut', () => {
    const hand = new Hand([1, 2, 3], plain)
    const old = [1, 2, 3, 4, 5].map((index) => ({ term: 1, index, kind: 'normal' as const, data: noData }))
    hand.give([append({ from: 2, to: 1, term: 1, entries: old })])
    hand.give([
      append({
        from: 3,
        to: 1,
        term: 2,
        index: 1,
        logTerm: 1,
        entries: [{ term: 2, index: 2, kind: 'normal', data: noData }],
      }),
    ])
    expect(hand.raft(1).lastIndex).toBe(2)
    expect(hand.raft(1).termAt(2)).toBe(2)
  })

  it('19, 20, 22: refusals and acknowledgements of an earlier term say nothing', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.elect(1)
    hand.propose(1, 'a')
    hand.settle()
    const before = Object.assign({}, hand.raft(1).status.progress.get(2))
    hand.elect(1)
    hand.elect(2)
    hand.elect(1)
    const { progress, term } = hand.raft(1).status
    const match = progress.get(2)?.match
    expect(term).toBeGreaterThan(1)
    hand.give([
      message({ kind: 'appendReply', from: 2, to: 1, term: 1, index: 1, reject: true, hint: 0 }),
      message({ kind: 'appendReply', from: 2, to: 1, term: 1, index: 99 }),
    ])
    expect(progress.get(2)?.match).toBe(match)
    expect(before.match).toBe(2)
  })

  it('24: a member that has lost its acknowledged tail stops', () => {
    const configuration = { voters: [1, 2, 3], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
    const snapshot = { index: 0, term: 0, configuration }
    expect(
      () => new Raft({ id: 1, snapshot, hardState: { term: 2, vote: 0, commit: 7 }, entries: [], random: () => 0 }),
    ).toThrow(RaftInvariantError)
    const hand = new Hand([1, 2, 3], plain)
    expect(() => hand.raft(1).step(message({ kind: 'heartbeat', from: 2, to: 1, term: 1, commit: 5 }))).toThrow(
      /acknowledged tail is lost/,
    )
  })

  it('25: diverging logs meet after few probes', () => {
    const hand = new Hand([1, 2], { ...plain })
    const tail = (term: number, from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, i) => ({
        term,
        index: from + i,
        kind: 'normal' as const,
        data: noData,
      }))
    hand.give([append({ from: 2, to: 1, term: 2, entries: [...tail(1, 1, 10), ...tail(2, 11, 60)] })])
    hand.give([append({ from: 1, to: 2, term: 3, entries: [...tail(1, 1, 10), ...tail(3, 11, 80)] })])
    hand.inbox = []
    let probes = 0
    hand.elect(2, (one) => {
      if (one.kind === 'append') probes++
      return false
    })
    expect(hand.raft(1).lastIndex).toBe(hand.raft(2).lastIndex)
    expect(probes).toBeLessThanOrEqual(5)
  })

  it('27: an idle peer leaves probing and snapshots by a heartbeat', () => {
    const hand = new Hand([1, 2, 3])
    hand.elect(1, (one) => one.to === 3)
    hand.inbox = []
    hand.tick(1)
    hand.settle()
    expect(hand.raft(1).status.progress.get(3)?.state).toBe('replicate')
  })
})

describe('storage', () => {
  it('28: a service of one commits only what is durable', () => {
    const hand = new Hand([1], plain)
    hand.autoWrite = false
    hand.raft(1).campaign()
    hand.flush(1)
    hand.write(1)
    hand.flush(1)
    hand.write(1)
    hand.flush(1)
    expect(hand.raft(1)).toMatchObject({ role: 'leader', commit: 1 })
    hand.propose(1, 'x')
    expect(hand.raft(1).commit).toBe(1)
    hand.write(1)
    expect(hand.raft(1).commit).toBe(2)
  })

  it('29: an acknowledgement waits for all earlier writes, also when it has nothing to write itself', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.autoWrite = false
    const entries = [{ term: 1, index: 1, kind: 'normal' as const, data: noData }]
    hand.give([append({ from: 2, to: 1, term: 1, entries })])
    hand.give([append({ from: 2, to: 1, term: 1, entries })])
    expect(hand.inbox).toEqual([])
    expect(hand.writes.get(1)?.length).toBe(2)
    hand.write(1, 1)
    expect(hand.inbox.length).toBe(1)
  })

  it('30: the end of a write does not make durable what was overwritten meanwhile (ABA)', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.autoWrite = false
    const entry = (term: number, index: number) => ({ term, index, kind: 'normal' as const, data: noData })
    hand.give([append({ from: 2, to: 1, term: 1, entries: [entry(1, 1), entry(1, 2)] })])
    hand.give([append({ from: 3, to: 1, term: 2, index: 1, logTerm: 1, entries: [entry(2, 2)], commit: 0 })])
    hand.give([append({ from: 2, to: 1, term: 3, index: 1, logTerm: 1, entries: [entry(1, 2)], commit: 2 })])
    expect(hand.writes.get(1)?.length).toBe(3)
    hand.write(1, 1)
    hand.flush(1)
    expect(hand.applied.get(1)?.map((one) => one.index)).toEqual([1])
    hand.write(1)
    hand.flush(1)
    expect(hand.applied.get(1)?.map((one) => `${one.term}/${one.index}`)).toEqual(['1/1', '1/2'])
  })

  it('32: term, vote and entries are one write', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.autoWrite = false
    hand.give([append({ from: 2, to: 1, term: 7, entries: [{ term: 7, index: 1, kind: 'normal', data: noData }] })])
    expect(hand.writes.get(1)).toMatchObject([{ persist: { hardState: { term: 7 }, entries: [{ index: 1 }] } }])
  })
})

describe('snapshots and compaction', () => {
  const configuration = { voters: [1, 2, 3], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const entries = [1, 2, 3, 4].map((index) => ({ term: 1, index, kind: 'normal' as const, data: noData }))

  it('38: a snapshot that is behind the commit, or matches the log, keeps the tail', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.give([append({ from: 2, to: 1, term: 1, entries, commit: 2 })])
    hand.give([message({ kind: 'snapshot', from: 2, to: 1, term: 1, snapshot: { index: 1, term: 1, configuration } })])
    hand.give([message({ kind: 'snapshot', from: 2, to: 1, term: 1, snapshot: { index: 3, term: 1, configuration } })])
    expect(hand.raft(1)).toMatchObject({ lastIndex: 4, commit: 3 })
  })

  it('39: a snapshot with another term at its index replaces the log', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.give([append({ from: 2, to: 1, term: 1, entries, commit: 2 })])
    hand.give([message({ kind: 'snapshot', from: 3, to: 1, term: 2, snapshot: { index: 3, term: 2, configuration } })])
    expect(hand.raft(1)).toMatchObject({ lastIndex: 3, commit: 3 })
  })

  it('43: a log that is only a snapshot has its last term', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.give([message({ kind: 'snapshot', from: 3, to: 1, term: 5, snapshot: { index: 8, term: 4, configuration } })])
    hand.inbox = []
    hand.give([message({ kind: 'vote', from: 2, to: 1, term: 9, index: 20, logTerm: 3 })])
    expect(hand.take()).toMatchObject([{ reject: true }])
  })

  it('44: an append whose previous entry is compacted deletes nothing', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.give([append({ from: 2, to: 1, term: 1, entries, commit: 4 })])
    hand.raft(1).compact(3)
    hand.inbox = []
    hand.give([append({ from: 2, to: 1, term: 1, index: 1, logTerm: 1, entries: entries.slice(1, 2) })])
    expect(hand.raft(1).lastIndex).toBe(4)
    expect(hand.take()).toMatchObject([{ kind: 'appendReply', index: 4, reject: false }])
  })

  it('45: nothing is handed out to apply while a snapshot is being written', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.autoWrite = false
    hand.give([message({ kind: 'snapshot', from: 2, to: 1, term: 1, snapshot: { index: 5, term: 1, configuration } })])
    hand.give([
      append({
        from: 2,
        to: 1,
        term: 1,
        index: 5,
        logTerm: 1,
        entries: [{ term: 1, index: 6, kind: 'normal', data: noData }],
        commit: 6,
      }),
    ])
    expect(hand.applied.get(1)).toEqual([])
    hand.write(1)
    hand.flush(1)
    expect(hand.applied.get(1)?.map((one) => one.index)).toEqual([6])
  })

  it('46: the progress of a snapshot does not outlive the term', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.elect(1, (one) => one.to === 3)
    hand.propose(1, 'a')
    hand.settle((one) => one.to === 3)
    hand.raft(1).snapshotTaken({ index: 2, term: 1, configuration })
    hand.raft(1).compact(2)
    hand.raft(1).beat()
    hand.flush(1)
    hand.settle((one) => one.kind === 'snapshot')
    expect(hand.raft(1).status.progress.get(3)?.state).toBe('snapshot')
    hand.elect(2)
    hand.elect(1, (one) => one.kind === 'snapshot')
    expect(hand.raft(1).status.progress.get(3)?.pendingSnapshot ?? 0).toBeLessThanOrEqual(2)
  })
})

describe('membership', () => {
  const add = (node: number) => ({
    transition: 'auto' as const,
    steps: [{ kind: 'addVoter' as const, node }],
    context: noData,
  })

  it('47, 48: no change before the first entry of the term is applied, and one at a time', () => {
    const hand = new Hand([1, 2, 3, 4], plain, [1, 2, 3])
    hand.raft(1).campaign()
    hand.flush(1)
    hand.give(hand.take())
    hand.give(hand.take((one) => one.kind === 'voteReply'))
    expect(hand.raft(1).role).toBe('leader')
    hand.settle((one) => one.kind === 'appendReply')
    expect(hand.raft(1).proposeConfiguration(add(4))).toMatchObject({ index: 2 })
    expect(hand.raft(1).proposeConfiguration(add(4))).toMatchObject({ refused: expect.stringContaining('pending') })
  })

  it('48: a member with a committed change that is not applied does not stand for election', () => {
    const configuration = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
    const raft = new Raft({
      id: 1,
      snapshot: { index: 0, term: 0, configuration },
      hardState: { term: 1, vote: 0, commit: 1 },
      entries: [{ term: 1, index: 1, kind: 'configuration', change: add(2) }],
      random: () => 0,
    })
    raft.campaign()
    expect(raft.role).toBe('follower')
  })

  it('49: a leader that removes itself hands over before it goes', () => {
    const hand = new Hand([1, 2])
    hand.elect(1)
    hand.raft(1).proposeConfiguration({ transition: 'auto', steps: [{ kind: 'remove', node: 1 }], context: noData })
    hand.flush(1)
    hand.settle()
    expect(hand.raft(2)).toMatchObject({ role: 'leader', configuration: { voters: [2] } })
    expect(hand.propose(2, 'x')).toBeDefined()
    hand.settle()
    expect(hand.texts(2)).toEqual(['x'])
  })

  it('50: a later leader leaves the joint configuration too', () => {
    const hand = new Hand([1, 2, 3, 4], plain, [1, 2, 3])
    hand.elect(1)
    const steps = [
      { kind: 'addVoter' as const, node: 4 },
      { kind: 'remove' as const, node: 3 },
    ]
    hand.raft(1).proposeConfiguration({ transition: 'auto', steps, context: noData })
    hand.flush(1)
    hand.settle(
      (one) =>
        one.kind === 'append' &&
        one.entries.some((entry) => entry.kind === 'configuration' && entry.change.steps.length === 0),
    )
    expect(hand.raft(1).configuration.votersOutgoing.length).toBe(3)
    hand.elect(2)
    hand.settle()
    expect(hand.raft(2).configuration).toMatchObject({ voters: [1, 2, 4], votersOutgoing: [] })
  })
})

describe('reads', () => {
  it('55: a read waits for the first commit of the term', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.raft(1).campaign()
    hand.flush(1)
    hand.give(hand.take())
    hand.give(hand.take((one) => one.kind === 'voteReply'))
    hand.raft(1).read(1)
    expect(hand.raft(1).takeEffects().reads).toEqual([])
    hand.flush(1)
  })

  it('56: a delayed answer to an earlier heartbeat does not confirm a later read', () => {
    const hand = new Hand([1, 2, 3], plain)
    hand.elect(1)
    hand.raft(1).read(7)
    hand.flush(1)
    hand.give(hand.take((one) => one.kind === 'heartbeat'))
    const [answer, other] = hand.take((one) => one.kind === 'heartbeatReply') as [Message, Message]
    hand.raft(1).step(answer)
    expect(hand.raft(1).takeEffects().reads).toEqual([{ context: 7, index: 1 }])
    hand.raft(1).read(7)
    expect(hand.raft(1).takeEffects().reads).toEqual([])
    hand.raft(1).step(answer)
    hand.raft(1).step(other)
    expect(hand.raft(1).takeEffects().reads).toEqual([])
  })

  it('58: a leader that hears from no quorum steps down, whatever its disk does', () => {
    const hand = new Hand([1, 2, 3])
    hand.elect(1)
    hand.autoWrite = false
    hand.tick(1, 30)
    expect(hand.raft(1).role).not.toBe('leader')
  })
})
