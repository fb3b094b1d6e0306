import {
  type Effects,
  type Entry,
  type HardState,
  type Message,
  Raft,
  type RaftOptions,
  type SnapshotMeta,
} from '../src/index.js'
import { type RaftRules, STANDARD_RULES } from '../src/rules.js'

/** Members whose messages and writes are moved by hand: for tests that need one exact order of events. */
export class Hand {
  readonly rafts = new Map<number, Raft>()
  readonly disks = new Map<number, { hard: HardState; entries: Entry[]; snapshot: SnapshotMeta }>()
  readonly applied = new Map<number, Entry[]>()
  inbox: Message[] = []
  /** Writes that are not durable yet, with what waits for them. */
  readonly writes = new Map<number, Effects[]>()
  autoWrite = true

  constructor(
    ids: readonly number[],
    private readonly options: Partial<RaftOptions & RaftRules> = {},
    voters: readonly number[] = ids,
    learners: readonly number[] = [],
  ) {
    const configuration = { voters, votersOutgoing: [], learners, learnersNext: [], autoLeave: false }
    for (const id of ids) {
      this.disks.set(id, {
        hard: { term: 0, vote: 0, commit: 0 },
        entries: [],
        snapshot: { index: 0, term: 0, configuration },
      })
      this.start(id)
    }
  }

  start(id: number): Raft {
    const disk = this.disks.get(id) as { hard: HardState; entries: Entry[]; snapshot: SnapshotMeta }
    const { snapshot, hard: hardState, entries } = disk
    const options = { id, snapshot, hardState, entries, random: () => 0, ...this.options }
    const raft = new Raft(options, { ...STANDARD_RULES, ...this.options })
    this.rafts.set(id, raft)
    this.applied.set(id, [])
    this.writes.set(id, [])
    this.flush(id)
    return raft
  }

  raft(id: number): Raft {
    return this.rafts.get(id) as Raft
  }

  /** Takes what the core gives out; with `autoWrite` every write completes at once. */
  flush(id: number): void {
    const raft = this.raft(id)
    while (raft.hasEffects) {
      const effects = raft.takeEffects()
      this.inbox.push(...effects.messages)
      if (effects.persist === undefined) this.inbox.push(...effects.gated)
      else this.writes.get(id)?.push(effects)
      for (const entry of effects.committed) {
        this.applied.get(id)?.push(entry)
        if (entry.kind === 'configuration') raft.applyConfiguration(entry.change)
        raft.applied(entry.index)
      }
      if (this.autoWrite) this.write(id)
    }
  }

  /** Completes the writes under way. */
  write(id: number, count = Number.POSITIVE_INFINITY): void {
    for (let i = 0; i < count; i++) {
      const effects = this.writes.get(id)?.shift()
      if (effects?.persist === undefined) return
      const disk = this.disks.get(id) as { hard: HardState; entries: Entry[]; snapshot: SnapshotMeta }
      const { hardState, entries, snapshot, sequence } = effects.persist
      disk.hard = hardState
      if (snapshot !== undefined) Object.assign(disk, { snapshot, entries: [] })
      const first = entries[0]
      if (first !== undefined)
        disk.entries = [...disk.entries.slice(0, first.index - disk.snapshot.index - 1), ...entries]
      this.raft(id).persisted(sequence)
      this.inbox.push(...effects.gated)
      if (this.autoWrite) this.flush(id)
    }
  }

  /** Takes the messages that fit out of the inbox. */
  take(fits: (message: Message) => boolean = () => true): Message[] {
    const taken = this.inbox.filter(fits)
    this.inbox = this.inbox.filter((message) => !fits(message))
    return taken
  }

  give(messages: readonly Message[]): void {
    for (const message of messages) {
      const raft = this.rafts.get(message.to)
      if (raft === undefined) continue
      raft.step(message)
      this.flush(message.to)
    }
  }

  /** Delivers everything until nothing moves; `lost` messages vanish. */
  settle(lost: (message: Message) => boolean = () => false): void {
    for (let rounds = 0; rounds < 1000 && this.inbox.length > 0; rounds++) {
      this.give(this.take().filter((message) => !lost(message)))
    }
    if (this.inbox.length > 0) throw new Error('no rest')
  }

  elect(id: number, lost?: (message: Message) => boolean): void {
    this.raft(id).campaign()
    this.flush(id)
    this.settle(lost)
  }

  propose(id: number, text: string): number | undefined {
    const index = this.raft(id).propose([Uint8Array.from(text, (c) => c.charCodeAt(0))])
    this.flush(id)
    return index
  }

  tick(id: number, times = 1): void {
    for (let i = 0; i < times; i++) {
      this.raft(id).tick()
      this.flush(id)
    }
  }

  texts(id: number): string[] {
    return (this.applied.get(id) ?? []).flatMap((entry) =>
      entry.kind === 'normal' && entry.data.length > 0 ? [String.fromCharCode(...entry.data)] : [],
    )
  }
}
