import {
  type Command,
  errorOf,
  type LeaseholdError,
  type LockState,
  type Refused,
  type Result,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'
import {
  type ExportResult,
  exportAtOnce,
  type Logger,
  type Member,
  type ReadView,
  type StateExport,
} from '@leasehold/replica'
import { COMMAND_TIMEOUT_MS, READ_TIMEOUT_MS } from './limits.js'

type Kind = Exclude<Result['kind'], 'refused'>
type Of<K extends Kind> = Extract<Result, { kind: K }>

/** A promise interface to a member: adds timeouts, and turns refusals into typed errors. */
export class ReplicaClient {
  /** Number of submitted commands without an outcome. */
  inFlight = 0
  #idle: (() => void)[] = []

  constructor(
    readonly member: Member<LockState>,
    readonly log: Logger,
  ) {}

  get epoch(): number {
    return this.member.status.epoch
  }

  /**
   * Submits a command whose result is one of `kinds`.
   * @throws the typed error of a refusal; UnknownOutcomeError after {@link COMMAND_TIMEOUT_MS}
   */
  submit<K extends Kind>(command: Command, ...kinds: readonly K[]): Promise<Of<K>> {
    return new Promise((resolve, reject) => {
      this.inFlight++
      const timer = setTimeout(() => {
        reject(
          new UnknownOutcomeError(`the ${command.kind} has no outcome after ${COMMAND_TIMEOUT_MS} ms`, {
            hint: 'it may still take effect: check GET /v1/locks, or retry with the same request number',
          }),
        )
      }, COMMAND_TIMEOUT_MS)
      const done = (result: Result) => {
        clearTimeout(timer)
        this.#finish()
        if (result.kind === 'refused') reject(this.errorOf(result))
        else if ((kinds as readonly string[]).includes(result.kind)) resolve(result as Of<K>)
        else reject(new TypeError(`a ${command.kind} was answered by ${result.kind}`))
      }
      try {
        this.member.submit(command, done)
      } catch (error) {
        clearTimeout(timer)
        this.#finish()
        reject(error)
      }
    })
  }

  /**
   * Reads the state linearizably; with `stale`, the applied state of this member.
   * @throws UnavailableError without an answer after {@link READ_TIMEOUT_MS}
   */
  read<T>(stale: boolean, look: (view: ReadView<LockState>) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (stale) return resolve(look(this.member.stale()))
      const timer = setTimeout(
        () =>
          reject(new UnavailableError(`no answer from a quorum after ${READ_TIMEOUT_MS} ms`, { code: 'no-quorum' })),
        READ_TIMEOUT_MS,
      )
      this.member.read((view) => {
        clearTimeout(timer)
        if ('refused' in view) return reject(this.errorOf(view.refused))
        try {
          resolve(look(view))
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Copies the state at one linearizable point or, with `stale`, as this member has applied it, without blocking others. */
  async exportState(stale: boolean): Promise<StateExport> {
    const { member } = this
    const answer = await this.read(stale, ({ state }) =>
      member.exportState === undefined
        ? exportAtOnce(state)
        : new Promise<ExportResult>((resolve) => member.exportState?.(resolve)),
    )
    if ('refused' in answer) throw this.errorOf(answer.refused)
    return answer
  }

  /** Resolves when every command has an outcome, at the latest after `timeoutMs`. */
  async settled(timeoutMs: number): Promise<void> {
    if (this.inFlight === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#idle.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  /** The typed error of a refusal; its hint names the leader if that is another member. */
  errorOf(refused: Refused): LeaseholdError {
    const { leaderUrl } = this.member.status
    const elsewhere = refused.code === 'no-quorum' && leaderUrl !== '' ? `the leader is at ${leaderUrl}` : undefined
    return errorOf(refused.code, refused.message, { hint: refused.hint ?? elsewhere, version: refused.version })
  }

  #finish(): void {
    this.inFlight--
    if (this.inFlight > 0) return
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }
}
