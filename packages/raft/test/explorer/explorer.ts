import { Raft, type Effects, type Entry, type HardState, type Message, type SnapshotMeta } from '../../src/index.js'
import { STANDARD_RULES } from '../../src/rules.js'
import { viewOf } from '../message-view.js'

/** How many of each may happen in one run; deliveries and writes are bounded by the depth alone. */
export interface Bounds {
  readonly members: number
  readonly depth: number
  readonly campaigns: number
  readonly proposals: number
  readonly crashes: number
  /** Members that may crash; default: all. */
  readonly crashing?: readonly number[]
  /** Messages that may arrive a second time. */
  readonly duplicates: number
  /** States after which the search ends, to be on the safe side. */
  readonly statesMax: number
}

interface Member {
  readonly id: number
  raft: Raft
  hard: HardState
  entries: Entry[]
  writes: Effects[]
}

type Choice = readonly [kind: 'campaign' | 'propose' | 'crash' | 'write' | 'deliver' | 'duplicate', which: number]

/** What all runs together have seen: a term has one leader, an index one committed entry. */
class World {
  readonly members: Member[] = []
  readonly messages: Message[] = []
  private readonly spent = { campaign: 0, propose: 0, crash: 0, duplicate: 0 }
  /** Of this run: the leader of each term, and the committed entry at each index. */
  private readonly leaders = new Map<number, number>()
  private readonly committed = new Map<number, string>()

  constructor(private readonly bounds: Bounds) {
    for (let id = 1; id <= bounds.members; id++) {
      const hard = { term: 0, vote: 0, commit: 0 }
      this.members.push({ id, raft: this.start(id, hard, []), hard, entries: [], writes: [] })
    }
  }

  private start(id: number, hardState: HardState, entries: readonly Entry[]): Raft {
    const voters = Array.from({ length: this.bounds.members }, (_, i) => i + 1)
    const configuration = { voters, votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
    const snapshot: SnapshotMeta = { index: 0, term: 0, configuration }
    const rules = { ...STANDARD_RULES, preVote: false, checkQuorum: false }
    return new Raft({ id, snapshot, hardState, entries, random: () => 0 }, rules)
  }

  choices(): Choice[] {
    const { bounds, spent, members } = this
    const list: Choice[] = []
    // Members are interchangeable: the first to stand is member 1, and member 3 is like member 2.
    for (const { id, raft } of members.slice(0, spent.campaign === 0 ? 1 : 2)) {
      if (spent.campaign < bounds.campaigns && raft.role !== 'leader') list.push(['campaign', id])
    }
    for (const { id, raft, writes } of members) {
      if (spent.propose < bounds.proposals && raft.role === 'leader') list.push(['propose', id])
      const mayCrash = bounds.crashing?.includes(id) ?? true
      if (mayCrash && spent.crash < bounds.crashes) list.push(['crash', id])
      if (writes.length > 0) list.push(['write', id])
    }
    this.messages.forEach((_, i) => list.push(['deliver', i]))
    if (spent.duplicate < bounds.duplicates) this.messages.forEach((_, i) => list.push(['duplicate', i]))
    return list
  }

  take([kind, which]: Choice): void {
    if (kind === 'deliver' || kind === 'duplicate') {
      const message = this.messages[which] as Message
      if (kind === 'deliver') this.messages.splice(which, 1)
      else this.spent.duplicate++
      const member = this.members[message.to - 1] as Member
      member.raft.step(message)
      return this.drain(member)
    }
    const member = this.members[which - 1] as Member
    if (kind === 'write') this.write(member)
    else {
      this.spent[kind]++
      if (kind === 'campaign') member.raft.campaign()
      else if (kind === 'propose') member.raft.propose([Uint8Array.of(this.spent.propose)])
      else {
        member.raft = this.start(member.id, member.hard, member.entries)
        member.writes = []
      }
    }
    this.drain(member)
  }

  private drain(member: Member): void {
    const { raft } = member
    while (raft.hasEffects) {
      const effects = raft.takeEffects()
      this.messages.push(...effects.messages)
      if (effects.persist === undefined) this.messages.push(...effects.gated)
      else member.writes.push(effects)
      for (const entry of effects.committed) raft.applied(entry.index)
    }
    this.check(member)
  }

  private write(member: Member): void {
    const effects = member.writes.shift() as Effects
    const { hardState, entries, sequence } = effects.persist as NonNullable<Effects['persist']>
    member.hard = hardState
    const first = entries[0]
    if (first !== undefined) member.entries = [...member.entries.slice(0, first.index - 1), ...entries]
    member.raft.persisted(sequence)
    this.messages.push(...effects.gated)
  }

  private check({ id, raft }: Member): void {
    if (raft.role === 'leader') {
      const known = this.leaders.get(raft.term)
      if (known !== undefined && known !== id) throw new Error(`${known} and ${id} lead in term ${raft.term}`)
      this.leaders.set(raft.term, id)
      for (const [index, text] of this.committed) {
        if (textOf(raft.entry(index)) !== text)
          throw new Error(`leader ${id} of term ${raft.term} lacks ${index}: ${text}`)
      }
    }
    for (let index = 1; index <= raft.commit; index++) {
      const text = textOf(raft.entry(index))
      const known = this.committed.get(index)
      if (known !== undefined && known !== text)
        throw new Error(`${id} committed ${text} at ${index}, another ${known}`)
      this.committed.set(index, text)
    }
  }

  /** Equal texts mean equal futures. */
  fingerprint(): string {
    const members = this.members.map(({ raft, hard, entries, writes }) => {
      const { role, term, vote, leader, commit, last, progress } = raft.status
      const log = Array.from({ length: last }, (_, i) => textOf(raft.entry(i + 1)))
      const peers = [...progress].map(([peer, one]) => [peer, one.state, one.match, one.next, one.isPaused])
      const shown = role === 'leader' ? peers : []
      const waiting = writes.map(({ persist, waiting }) => [
        persist?.hardState,
        persist?.entries.map(textOf),
        waiting.map(messageText),
      ])
      return [role, term, vote, leader, commit, log, shown, hard, entries.map(textOf), waiting]
    })
    const history = [...this.leaders, ...this.committed].map(String).sort()
    return JSON.stringify([members, this.messages.map(messageText).sort(), this.spent, history])
  }
}

function textOf(entry: Entry | undefined): string {
  return entry === undefined ? '-' : `${entry.term}:${entry.kind === 'normal' ? entry.data.join() : ''}`
}

function messageText(message: Message): string {
  const { kind, from, to, term, index, logTerm, commit, reject, hint, entries } = viewOf(message)
  return [kind, from, to, term, index, logTerm, commit, reject, hint, ...entries.map(textOf)].join(' ')
}

/**
 * Every order of events up to a depth, breadth first: what can be told apart is visited once. The core cannot be copied, so
 * each state is reached by replaying its choices. Returns the number of states; a broken guarantee throws with its choices.
 */
export function explore(bounds: Bounds): { readonly states: number; readonly complete: boolean } {
  const reach = (path: readonly Choice[]): World => {
    const world = new World(bounds)
    try {
      for (const choice of path) world.take(choice)
    } catch (error) {
      throw new Error(`${(error as Error).message}\nafter ${JSON.stringify(path)}`, { cause: error })
    }
    return world
  }
  const seen = new Set<string>()
  let paths: Choice[][] = [[]]
  for (let depth = 0; depth < bounds.depth; depth++) {
    const next: Choice[][] = []
    for (const path of paths) {
      for (const choice of reach(path).choices()) {
        const longer = [...path, choice]
        const print = reach(longer).fingerprint()
        if (seen.has(print)) continue
        seen.add(print)
        next.push(longer)
        if (seen.size >= bounds.statesMax) return { states: seen.size, complete: false }
      }
    }
    paths = next
  }
  return { states: seen.size, complete: true }
}
