import { type Command, type Cursor, type Event, type Index, LockState, type Millis, type Result } from '@leasehold/core'
import type { AppliedBatch, Member, MemberStatus, ReadView } from '@leasehold/replica'
import { type ServiceClock, soon } from './clock.js'

/** How often the service looks whether something is due. */
const TICK_MS = 20
/** Events that a watch can go back to. */
const HISTORY_MAX = 100_000

interface Open {
  readonly command: Command
  readonly done: (result: Result) => void
}

/**
 * The real lock state behind the interface of a member, without disk and consensus: what comes in one turn is one entry,
 * stamped by the test's clock.
 */
export class TestMember implements Member<LockState> {
  #state = LockState.create({ epoch: 1 })
  #epoch = 1
  #index = 0
  #open: Open[] = []
  #secrets = 0
  #stopped = false
  #refusal: 'no-quorum' | undefined
  #history: { cursor: Cursor; event: Event }[] = []
  #cancelTick: () => void = () => {}
  readonly #clock: ServiceClock
  readonly #startMs: number
  readonly #applied = new Set<(batch: AppliedBatch) => void>()
  readonly #idle = new Set<() => void>()

  constructor(clock: ServiceClock) {
    this.#clock = clock
    this.#startMs = clock.nowMs
    this.#tick()
  }

  get state(): LockState {
    return this.#state
  }

  /** While it has no quorum it refuses everything, and no time passes in its state. */
  set quorum(has: boolean) {
    this.#refusal = has ? undefined : 'no-quorum'
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
    const code = this.#refusal
    if (code) return soon(() => done({ kind: 'refused', code, message: 'the test has taken the quorum away' }))
    this.#open.push({ command: this.#minted(command), done })
    if (this.#open.length === 1) soon(() => this.#close())
  }

  read(done: Parameters<Member<LockState>['read']>[0]): void {
    const code = this.#refusal
    const refused: Result | undefined = code && { kind: 'refused', code, message: 'the test has taken the quorum away' }
    soon(() => done(refused ? { refused } : this.stale()))
  }

  stale(): ReadView<LockState> {
    return { state: this.#state, index: this.#index as Index }
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

  history(from: Cursor): { cursor: Cursor; event: Event }[] | undefined {
    const [oldest] = this.#history
    if (this.#history.length >= HISTORY_MAX && oldest && from.index < oldest.cursor.index) return undefined
    return this.#history.filter(({ cursor: { index, ordinal } }) => {
      return index > from.index || (index === from.index && ordinal > from.ordinal)
    })
  }

  stop(done: () => void): void {
    this.#stopped = true
    this.#cancelTick()
    done()
  }

  /** As if it had been restored from a backup: every session and hold is gone, persistent holds have new ids. */
  restore(): void {
    this.#epoch++
    this.#state = this.#state.withEpoch(this.#epoch).state
    this.#history = []
  }

  #tick(): void {
    this.#cancelTick = this.#clock.after(TICK_MS, () => {
      this.#tick()
      const due = this.#state.nextDue()
      if (this.#refusal === undefined && due !== undefined && due <= this.#nowMs()) this.#apply([])
    })
  }

  #nowMs(): number {
    return Math.floor(this.#clock.nowMs - this.#startMs)
  }

  #close(): void {
    const open = this.#open
    this.#open = []
    const results = this.#apply(open.map(({ command }) => command))
    open.forEach(({ done }, i) => done(results[i] as Result))
    for (const idle of this.#idle) idle()
  }

  #apply(commands: readonly Command[]): readonly Result[] {
    const index = ++this.#index as Index
    const { results, pushes, events } = this.#state.apply({ at: this.#nowMs() as Millis, commands }, index)
    events.forEach((event, i) => this.#history.push({ cursor: { epoch: this.#epoch, index, ordinal: i + 1 }, event }))
    if (this.#history.length > HISTORY_MAX) this.#history.splice(0, this.#history.length - HISTORY_MAX)
    for (const listener of this.#applied) listener({ index, commands: commands.length, pushes, events })
    if (commands.length === 0) for (const idle of this.#idle) idle()
    return results
  }

  #minted(command: Command): Command {
    const secret = () => (++this.#secrets).toString(16).padStart(32, '0')
    if (command.kind === 'openSession') return { ...command, secret: secret() }
    if (command.kind === 'adopt') return { ...command, newSecret: secret() }
    if (command.kind === 'acquire' && (command.persistent || command.portable)) return { ...command, secret: secret() }
    return command
  }
}
