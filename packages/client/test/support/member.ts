import { type Command, type Cursor, type Event, type Index, LockState, type Millis, type Result } from '@leasehold/core'
import type { AppliedBatch, Member, MemberStatus, ReadView } from '@leasehold/replica'
import type { TestPlatform } from './platform.js'

const CLOCK_STEP_MS = 20

/**
 * The real lock state behind the real interface, without disk and consensus: every turn's commands are one entry, stamped
 * with the test's clock.
 */
export class DirectMember implements Member<LockState> {
  state = LockState.create({ epoch: 1 })
  epoch = 1
  cluster = 'c1'
  role: MemberStatus['role'] = 'leader'
  leaderUrl = ''
  /** Refuses every command and read with this code. */
  refuse: 'no-quorum' | 'storage' | undefined
  /** Commands that were applied, for tests that count. */
  readonly log: Command[] = []
  #index = 0
  #open: { command: Command; done: (result: Result) => void }[] = []
  #scheduled = false
  readonly #history: { cursor: Cursor; event: Event }[] = []
  readonly #applied = new Set<(batch: AppliedBatch) => void>()
  readonly #idle = new Set<() => void>()
  #secrets = 0
  #stopped = false
  #cancelTick: () => void = () => {}

  constructor(readonly platform: TestPlatform) {
    this.#tick()
  }

  get status(): MemberStatus {
    return {
      cluster: this.cluster,
      epoch: this.epoch,
      member: 'm1',
      role: this.#stopped ? 'stopped' : this.role,
      leader: 'm1',
      leaderUrl: this.leaderUrl,
      term: 1,
      commitIndex: this.#index,
      appliedIndex: this.#index,
      disk: 'ok',
      failure: undefined,
    }
  }

  submit(command: Command, done: (result: Result) => void): void {
    if (this.refuse) {
      const refused: Result = { kind: 'refused', code: this.refuse, message: 'refused by the test' }
      queueMicrotask(() => done(refused))
      return
    }
    this.#open.push({ command: this.#minted(command), done })
    if (this.#scheduled) return
    this.#scheduled = true
    queueMicrotask(() => this.#close())
  }

  read(done: Parameters<Member<LockState>['read']>[0]): void {
    const { refuse } = this
    queueMicrotask(() => {
      if (refuse) done({ refused: { kind: 'refused', code: refuse, message: 'refused by the test' } })
      else done(this.stale())
    })
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

  history(from: Cursor): { cursor: Cursor; event: Event }[] | undefined {
    return this.#history.filter(({ cursor }) => {
      return cursor.index > from.index || (cursor.index === from.index && cursor.ordinal > from.ordinal)
    })
  }

  stop(done: () => void): void {
    this.#stopped = true
    this.#cancelTick()
    done()
  }

  /** Restored from a backup: everything but persistent holds is gone. */
  raiseEpoch(epoch: number): void {
    this.epoch = epoch
    this.state = this.state.withEpoch(epoch).state
  }

  #tick(): void {
    this.#cancelTick = this.platform.after(CLOCK_STEP_MS, () => {
      this.#tick()
      const due = this.state.nextDue()
      if (due !== undefined && due <= this.platform.mono) this.#apply([])
    })
  }

  #close(): void {
    this.#scheduled = false
    const open = this.#open
    this.#open = []
    const results = this.#apply(open.map(({ command }) => command))
    open.forEach(({ done }, i) => done(results[i] as Result))
    for (const idle of this.#idle) idle()
  }

  #apply(commands: readonly Command[]): readonly Result[] {
    this.log.push(...commands)
    const index = ++this.#index as Index
    const at = Math.floor(this.platform.mono) as Millis
    const { results, pushes, events } = this.state.apply({ at, commands }, index)
    events.forEach((event, i) => this.#history.push({ cursor: { epoch: this.epoch, index, ordinal: i + 1 }, event }))
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
