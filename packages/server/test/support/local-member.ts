import { randomBytes } from 'node:crypto'
import {
  type Command,
  type Cursor,
  type Event,
  type Index,
  LockState,
  type Millis,
  type Push,
  type Result,
} from '@leasehold/core'
import type { AppliedBatch, Member, MemberStatus, ReadView } from '@leasehold/replica'

/**
 * A member that keeps its state in memory, and applies commands one turn of the event loop later: a replica without disk
 * and consensus, as the server uses it. The tests inject faults.
 */
export class LocalMember implements Member<LockState> {
  readonly state: LockState
  index = 0
  /** While set, nothing is answered, as by a leader without a quorum. */
  frozen = false
  /** While set, every command and read is refused with it. */
  refusal: (Result & { kind: 'refused' }) | undefined
  changed: Partial<MemberStatus> = {}
  readonly submitted: Command[] = []
  #waiting: { command: Command; done: (result: Result) => void }[] = []
  #scheduled = false
  #stopped = false
  readonly #applied = new Set<(batch: AppliedBatch) => void>()
  readonly #idle = new Set<() => void>()
  readonly #status = new Set<(status: MemberStatus) => void>()
  readonly #history: { cursor: Cursor; event: Event }[] = []
  #historyFrom = 0
  readonly #timer: NodeJS.Timeout
  readonly #start = performance.now()

  constructor(readonly epoch = 1) {
    this.state = LockState.create({ epoch })
    this.#timer = setInterval(() => this.#tick(), 10)
  }

  get status(): MemberStatus {
    return {
      cluster: 'test-cluster',
      epoch: this.epoch,
      member: 'n1',
      role: 'leader',
      leader: 'n1',
      leaderUrl: '',
      term: 1,
      commitIndex: this.index,
      appliedIndex: this.index,
      disk: 'ok',
      failure: undefined,
      ...this.changed,
    }
  }

  submit(command: Command, done: (result: Result) => void): void {
    this.submitted.push(command)
    const { refusal } = this
    if (refusal !== undefined) {
      setImmediate(() => done(refusal))
      return
    }
    this.#waiting.push({ command: minted(command), done })
    this.#schedule()
  }

  read(done: Parameters<Member<LockState>['read']>[0]): void {
    const { refusal } = this
    if (this.frozen) return
    setImmediate(() => {
      if (refusal !== undefined) done({ refused: refusal })
      else if (this.#waiting.length === 0) done(this.stale())
      else this.read(done)
    })
  }

  stale(): ReadView<LockState> {
    return { state: this.state, index: this.index as Index }
  }

  onApplied(listener: (batch: AppliedBatch) => void): () => void {
    this.#applied.add(listener)
    return () => this.#applied.delete(listener)
  }

  onIdle(listener: () => void): () => void {
    this.#idle.add(listener)
    return () => this.#idle.delete(listener)
  }

  onStatus(listener: (status: MemberStatus) => void): () => void {
    this.#status.add(listener)
    return () => this.#status.delete(listener)
  }

  history(from: Cursor): readonly { cursor: Cursor; event: Event }[] | undefined {
    if (from.epoch !== this.epoch || from.index < this.#historyFrom) return undefined
    return this.#history.filter(({ cursor }) => {
      return cursor.index > from.index || (cursor.index === from.index && cursor.ordinal > from.ordinal)
    })
  }

  /** Number of listeners for applied entries. */
  get listeners(): number {
    return this.#applied.size
  }

  /** Removes all events, as a member does with old ones. */
  forgetHistory(): void {
    this.#history.length = 0
    this.#historyFrom = this.index + 1
  }

  /** Applies what was submitted while it was frozen. */
  thaw(): void {
    this.frozen = false
    this.#schedule()
  }

  stop(done: () => void): void {
    this.#stopped = true
    clearInterval(this.#timer)
    setImmediate(done)
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (!this.frozen && !this.#stopped && this.#waiting.length > 0) this.#apply()
    })
  }

  #tick(): void {
    if (!this.frozen && this.state.hasDeadlines) this.#apply()
  }

  #apply(): void {
    const batch = this.#waiting
    this.#waiting = []
    const at = Math.floor(performance.now() - this.#start) as Millis
    this.index++
    const index = this.index as Index
    const { results, pushes, events } = this.state.apply({ at, commands: batch.map((one) => one.command) }, index)
    events.forEach((event, i) => this.#history.push({ cursor: { epoch: this.epoch, index, ordinal: i + 1 }, event }))
    for (const listener of this.#applied)
      listener({ index, commands: batch.length, pushes: pushes as readonly Push[], events })
    batch.forEach(({ done }, i) => done(results[i] as Result))
    for (const listener of this.#idle) listener()
  }
}

function minted(command: Command): Command {
  const secret = randomBytes(16).toString('hex')
  if (command.kind === 'openSession') return { ...command, secret }
  if (command.kind === 'adopt') return { ...command, newSecret: secret }
  if (command.kind === 'acquire' && (command.persistent || command.portable)) return { ...command, secret }
  return command
}
