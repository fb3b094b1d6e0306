import { LeaseholdError } from '@leasehold/core'
import { holdOfRequest } from '@leasehold/fence/http'
import { openingOf, staleToken } from '@leasehold/fence/resource'
import type { Machine } from '../machine.js'
import { serveRpc } from '../network/rpc.js'
import type { Process } from '../process.js'
import type { World } from '../world.js'
import { DurableCell } from './cell.js'

export type ResourceKind = 'U' | 'G' | 'G*' | 'V' | 'X'

export interface ResourceOptions {
  readonly kind: ResourceKind
  readonly initial?: number
  /** Of `V`: whether the token of the header is the present one, as the lock service says. */
  readonly verify?: (process: Process, header: string) => Promise<boolean>
  /** Of `V`: time between the service's answer and the write. */
  readonly stallUs?: number
  /** Of `V`: keeps a mark as well. */
  readonly mark?: boolean
  /** A broken resource: what it acknowledges is durable only {@link LATE_SYNC_US} later. */
  readonly acknowledgesBeforeSync?: boolean
}

/** A question to a resource, as a client sends it. */
export interface ResourceQuestion {
  readonly action: 'read' | 'write' | 'effect'
  /** The value of the `Fencing-Token` header; undefined: none. */
  readonly header?: string
  readonly value?: number
  /** For checkers only: which unit this is, and which version it has read. The resource does not look at it. */
  readonly unit: UnitOfWork
}

export interface UnitOfWork {
  readonly client: string
  /** Number of the hold, in the order of grants. */
  readonly hold: number
  readonly readVersion?: number
}

export type ResourceAnswer =
  | { readonly ok: true; readonly value: number; readonly version: number }
  | { readonly ok: false; readonly code: string; readonly message: string }

/** What came to pass at a resource, for checkers. */
export interface ResourceRecord {
  readonly atUs: number
  readonly resource: string
  readonly action: ResourceQuestion['action']
  readonly unit: UnitOfWork
  readonly accepted: boolean
  readonly token: bigint | undefined
  /** It was one where tokens count. */
  readonly compared: boolean
  /** Version of the value after it. */
  readonly version: number
}

interface Stored {
  readonly value: number
  readonly version: number
  readonly mark: bigint | undefined
}

export const RESOURCE_PORT = 'resource'
/** A broken resource syncs this late. */
export const LATE_SYNC_US = 100_000

/**
 * A protected resource: a process with its own machine, link and disk. Value and mark are one durable unit, checked and
 * written in one step of one process, as a row of a database is. Tokens come in the header of
 * `@leasehold/fence/http` and are read, opened and refused by the code of that package.
 */
export class Resource {
  readonly name: string
  readonly kind: ResourceKind
  readonly records: ResourceRecord[] = []
  readonly machine: Machine
  readonly #world: World
  readonly #options: ResourceOptions
  readonly #cell: DurableCell<Stored>
  process: Process

  constructor(world: World, name: string, options: ResourceOptions) {
    this.#world = world
    this.name = name
    this.kind = options.kind
    this.#options = options
    this.machine = world.machine(name)
    this.#cell = new DurableCell<Stored>(this.machine, { value: options.initial ?? 0, version: 0, mark: undefined })
    this.process = this.#serve()
  }

  get value(): number {
    return this.#cell.value.value
  }

  get mark(): bigint | undefined {
    return this.#cell.value.mark
  }

  /** Starts its process again after it was killed or its machine lost power. */
  start(): void {
    if (this.process.alive) return
    if (!this.machine.on) this.machine.powerOn()
    this.process = this.#serve()
  }

  #serve(): Process {
    const process = this.machine.spawn({ promises: true })
    process.onEnd(() => this.#cell.lose())
    serveRpc<ResourceQuestion, ResourceAnswer>(process, RESOURCE_PORT, (question, reply) => {
      void this.#handle(process, question).then((answer) => {
        if (!process.alive || (question.action === 'effect' && answer.ok)) return
        reply(answer, { text: answer.ok ? `ok: ${answer.value}` : 'refused' })
      })
    })
    return process
  }

  async #handle(process: Process, question: ResourceQuestion): Promise<ResourceAnswer> {
    try {
      if (this.kind === 'V' && question.action === 'write') await this.#verify(process, question)
      return this.#step(question)
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      this.#record(question, false, this.#tokenOf(question.header), error.message)
      return { ok: false, code: error.code, message: error.message }
    }
  }

  /** The atomic step: check, effect and mark. */
  #step(question: ResourceQuestion): ResourceAnswer {
    const { action, value, header } = question
    const stored = this.#cell.value
    const checked = this.#compares(action)
    const token = checked ? this.#accepted(header, stored.mark) : this.#tokenOf(header)
    const mark = checked ? token : stored.mark
    const next = action === 'read' ? stored.value : action === 'effect' ? stored.value + 1 : (value ?? 0)
    const version = action === 'read' ? stored.version : stored.version + 1
    this.#cell.set({ value: next, version, mark })
    if (this.#options.acknowledgesBeforeSync !== true) this.#cell.commit()
    else this.process.after(LATE_SYNC_US, () => this.#cell.commit())
    this.#record(question, true, token)
    return { ok: true, value: next, version }
  }

  #compares(action: ResourceQuestion['action']): boolean {
    const opens = this.kind === 'G*' || (this.kind === 'V' && this.#options.mark === true)
    return action === 'read' ? opens : action === 'write' && (opens || this.kind === 'G')
  }

  /** The greater of token and mark. @throws StaleTokenError, FencingRequiredError */
  #accepted(header: string | undefined, mark: bigint | undefined): bigint {
    const hold = holdOfRequest({ 'fencing-token': header })
    const { targets } = openingOf(hold, { resource: () => this.name })
    const token = targets[0]?.token as bigint
    if (mark !== undefined && token < mark) throw staleToken(this.name, token, mark)
    return token
  }

  async #verify(process: Process, question: ResourceQuestion): Promise<void> {
    const { verify, stallUs = 0 } = this.#options
    const { header = '' } = question
    const isPresent = (await verify?.(process, header)) ?? false
    this.#world.timeline.add({
      kind: 'resource',
      resource: this.name,
      by: question.unit.client,
      action: 'verify',
      accepted: isPresent,
    })
    if (!isPresent) throw staleToken(this.name, this.#tokenOf(header) ?? 0n, undefined)
    if (stallUs > 0) await process.sleep(stallUs)
  }

  #tokenOf(header: string | undefined): bigint | undefined {
    return header === undefined
      ? undefined
      : openingOf(holdOfRequest({ 'fencing-token': header }), {}).targets[0]?.token
  }

  #record(question: ResourceQuestion, accepted: boolean, token: bigint | undefined, text?: string): void {
    const { action, unit } = question
    const { value, version, mark } = this.#cell.value
    const compared = this.#compares(action)
    const { nowUs } = this.#world
    this.records.push({ atUs: nowUs, resource: this.name, action, unit, accepted, token, compared, version })
    this.#world.timeline.add({
      kind: 'resource',
      resource: this.name,
      by: unit.client,
      action: action === 'read' && this.kind === 'G*' ? 'open' : action,
      accepted,
      ...(token === undefined ? {} : { token: String(token) }),
      ...(mark === undefined ? {} : { mark: String(mark) }),
      ...(accepted ? { value: String(value) } : {}),
      ...(text === undefined ? {} : { text }),
    })
  }
}
