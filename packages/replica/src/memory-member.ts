import { type Command, type Cursor, type Index, LockState, type Millis, type Result } from '@leasehold/core'
import type { AppliedBatch, Member, MemberStatus, ReadView } from './member.js'
import { EventHistory, type EventHistoryOptions, type RecordedEvent } from './driver/event-history.js'
import { mintSecrets } from './driver/proposals.js'

/** How often the member checks for due deadlines. */
const TICK_MS = 20
const HISTORY: EventHistoryOptions = { events: 100_000, bytes: 256 * 1024 * 1024 }
/** Watches may start at the very beginning. */
const BEFORE_ALL = -1 as Index

/** The clock and scheduler of a test. */
export interface MemoryMemberOptions {
  /** Milliseconds since the member began. */
  readonly nowMs: () => number
  readonly after: (delayMs: number, callback: () => void) => () => void
  readonly soon: (callback: () => void) => void
}

/**
 * A member for tests: the real lock state without disk and consensus. Commands of one turn form one entry, stamped by the
 * test's clock. Its secrets are predictable.
 */
export class MemoryMember implements Member<LockState> {
  state = LockState.create({ epoch: 1 })
  /** When set, every command and read is refused with this code, and time stands still in the state. */
  refuse: 'no-quorum' | 'storage' | undefined
  readonly #options: MemoryMemberOptions
  #epoch = 1
  #index = 0
  #open: { readonly command: Command; readonly done: (result: Result) => void }[] = []
  #history = new EventHistory(1, BEFORE_ALL, HISTORY)
  #secrets = 0
  #stopped = false
  #cancelTick: () => void = () => {}
  readonly #applied = new Set<(batch: AppliedBatch) => void>()
  readonly #idle = new Set<() => void>()

  constructor(options: MemoryMemberOptions) {
    this.#options = options
    this.#tick()
  }

  get status(): MemberStatus {
    return {
      cluster: 'test',
      epoch: this.#epoch,
      member: 'test',
      role: this.#stopped ? 'stopped' : 'leader',
      leader: 'test',
      leaderUrl: '',
      term: 1,
      commitIndex: this.#index,
      appliedIndex: this.#index,
      disk: 'ok',
      failure: undefined,
    }
  }

  submit(command: Command, done: (result: Result) => void): void {
    const refused = this.#refused()
    if (refused) return this.#options.soon(() => done(refused))
    this.#open.push({ command: this.#minted(command), done })
    if (this.#open.length === 1) this.#options.soon(() => this.#close())
  }

  read(done: Parameters<Member<LockState>['read']>[0]): void {
    const refused = this.#refused()
    this.#options.soon(() => done(refused ? { refused } : this.stale()))
  }

  stale(): ReadView<LockState> {
    return { state: this.state, index: this.#index as Index }
  }

  onApplied(listener: (batch: AppliedBatch) => void): () => void {
    this.#applied.add(listener)
    return () => this.#applied.delete(listener)
  }

  onIdle(listener: () => void): () => void {
    this.#idle.add(listener)
    return () => this.#idle.delete(listener)
  }

  onStatus(): () => void {
    return () => {}
  }

  history(from: Cursor): readonly RecordedEvent[] | undefined {
    return this.#history.since(from)
  }

  stop(done: () => void): void {
    this.#stopped = true
    this.#cancelTick()
    done()
  }

  /** Simulates a restore from a backup: sessions and holds are gone, persistent holds get new ids. */
  restore(epoch = this.#epoch + 1): void {
    this.#epoch = epoch
    this.state = this.state.withEpoch(epoch).state
    this.#history = new EventHistory(epoch, this.#index as Index, HISTORY)
  }

  /** A hook for subclasses that runs before commands are applied. */
  beforeApply(_commands: readonly Command[]): void {}

  #refused(): (Result & { kind: 'refused' }) | undefined {
    return this.refuse && { kind: 'refused', code: this.refuse, message: 'the test lets this member refuse everything' }
  }

  #tick(): void {
    this.#cancelTick = this.#options.after(TICK_MS, () => {
      this.#tick()
      const due = this.state.nextDeadline()
      if (this.refuse === undefined && due !== undefined && due <= this.#options.nowMs()) this.#apply([])
    })
  }

  #close(): void {
    const open = this.#open
    this.#open = []
    const results = this.#apply(open.map(({ command }) => command))
    open.forEach(({ done }, i) => done(results[i] as Result))
    for (const idle of this.#idle) idle()
  }

  #apply(commands: readonly Command[]): readonly Result[] {
    this.beforeApply(commands)
    const index = ++this.#index as Index
    const at = Math.floor(this.#options.nowMs()) as Millis
    const { results, pushes, events } = this.state.apply({ at, commands }, index)
    this.#history.add(index, events)
    for (const listener of this.#applied) listener({ index, commands: commands.length, pushes, events })
    if (commands.length === 0) for (const idle of this.#idle) idle()
    return results
  }

  #minted(command: Command): Command {
    const bytes = (length: number): Uint8Array => {
      const all = new Uint8Array(length)
      new DataView(all.buffer).setUint32(length - 4, ++this.#secrets)
      return all
    }
    return mintSecrets(command, { bytes, below: () => 0 })
  }
}
