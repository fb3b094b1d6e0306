import { describe, expect, it } from 'vitest'
import { type Message, Raft, type SnapshotMeta } from '../src/index.js'

const NO_NODES = { voters: [], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }

/** A founder that leads alone, with a few entries, and a member that knows nothing. */
function founded(): { leader: Raft; joiner: Raft } {
  const start = (id: number, voters: readonly number[]) =>
    new Raft({
      id,
      snapshot: { index: 0, term: 0, configuration: { ...NO_NODES, voters } },
      hardState: { term: 0, vote: 0, commit: 0 },
      entries: [],
      random: () => 0,
    })
  const leader = start(1, [1])
  leader.campaign()
  run(leader)
  leader.propose([Uint8Array.of(1)])
  run(leader)
  leader.proposeConfiguration({
    transition: 'auto',
    steps: [{ kind: 'addLearner', node: 2 }],
    context: new Uint8Array(0),
  })
  return { leader, joiner: start(2, []) }
}

/** Lets a member write and apply until it rests; what it sends, and whether it asked for a snapshot. */
function run(raft: Raft): { sent: Message[]; wanted: boolean } {
  const sent: Message[] = []
  let wanted = false
  while (raft.hasEffects) {
    const effects = raft.takeEffects()
    wanted ||= effects.snapshotWanted
    sent.push(...effects.messages)
    for (const entry of effects.committed) {
      if (entry.kind === 'configuration') raft.applyConfiguration(entry.change)
      raft.applied(entry.index)
    }
    if (effects.persist !== undefined) raft.persisted(effects.persist.sequence)
    sent.push(...effects.gated)
  }
  return { sent, wanted }
}

function exchange(a: Raft, b: Raft): { sent: Message[]; wanted: boolean } {
  const all: Message[] = []
  let wanted = false
  for (let round = 0; round < 50; round++) {
    const batches = [run(a), run(b)]
    wanted ||= batches[0]?.wanted ?? false
    const sent = batches.flatMap((one) => one.sent)
    if (sent.length === 0) return { sent: all, wanted }
    all.push(...sent)
    for (const message of sent) (message.to === a.id ? a : b).step(message)
  }
  throw new Error('no rest')
}

describe('a member that joins a group whose log is whole', () => {
  it('gets no entries, since they do not say what was founded, but a snapshot', () => {
    const { leader, joiner } = founded()
    const { sent, wanted } = exchange(leader, joiner)
    expect(wanted).toBe(true)
    expect(joiner.lastIndex).toBe(0)
    expect(sent.filter((one) => one.kind === 'append' && one.index === 0)).toEqual([])

    const index = leader.status.applied
    const meta: SnapshotMeta = { index, term: leader.termAt(index) as number, configuration: leader.configuration }
    leader.snapshotTaken(meta)
    leader.tick()
    exchange(leader, joiner)
    expect(joiner.commit).toBe(leader.commit)
    expect(joiner.configuration).toEqual(leader.configuration)
    expect(joiner.configuration.voters).toEqual([1])
    expect(leader.status.progress.get(2)).toMatchObject({ state: 'replicate', match: leader.lastIndex })
  })

  it('may not ask for a snapshot of nothing', () => {
    const { leader } = founded()
    expect(() => leader.snapshotTaken({ index: 0, term: 0, configuration: NO_NODES })).toThrow(/snapshot of 0/)
  })
})
