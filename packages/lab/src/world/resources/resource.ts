import { LeaseholdError } from '@leasehold/core'
import { type CasGuard, type CasStore, decodeEnvelope, fence } from '@leasehold/fence/cas'
import { isEnvelope } from '@leasehold/fence/cas/envelope'
import { holdOfRequest } from '@leasehold/fence/http'
import { openingOf, staleToken } from '@leasehold/fence/common/resource'
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

/** The one object of a resource, as it is on its disk: what a guard has written, or plain text. */
interface Stored {
  readonly bytes: Uint8Array
  /** Of the object: a raised mark counts, too. */
  readonly revision: number
  /** How often the value was written. */
  readonly writes: number
}

export const RESOURCE_PORT = 'resource'
/** A broken resource syncs this late. */
export const LATE_SYNC_US = 100_000

/**
 * A protected resource: a process with its own machine, link and disk. Value and mark are one durable object, written on
 * the condition that it is still the one that was read. Tokens come in the header of `@leasehold/fence/http`, and where
 * they count the guard of `@leasehold/fence/cas` opens, compares, writes and refuses: nothing of it is done here again.
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
    const bytes = textOf(options.initial ?? 0)
    this.#cell = new DurableCell<Stored>(this.machine, { bytes, revision: 0, writes: 0 })
    this.process = this.#serve()
  }

  get value(): number {
    const { bytes } = this.#cell.value
    return numberOf(isEnvelope(bytes) ? decodeEnvelope(bytes).value : bytes)
  }

  get mark(): bigint | undefined {
    const { bytes } = this.#cell.value
    return isEnvelope(bytes) ? decodeEnvelope(bytes).mark : undefined
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
    const guard = this.#guard(process)
    serveRpc<ResourceQuestion, ResourceAnswer>(process, RESOURCE_PORT, (question, reply) => {
      void this.#handle(process, guard, question).then((answer) => {
        if (!process.alive || (question.action === 'effect' && answer.ok)) return
        reply(answer, { text: answer.ok ? `ok: ${answer.value}` : 'refused' })
      })
    })
    return process
  }

  /** The production guard over the object on this disk. */
  #guard(process: Process): CasGuard {
    const store: CasStore<number> = {
      read: async () => ({ bytes: this.#cell.value.bytes, version: this.#cell.value.revision }),
      write: async (_key, bytes, version) => {
        const before = this.#cell.value
        if (version !== before.revision) return false
        this.#store(bytes, writeOf(bytes) === writeOf(before.bytes) ? 0 : 1)
        return { version: this.#cell.value.revision }
      },
    }
    const draws = process.random('guard')
    return fence(store, {
      adoptPlain: true,
      resource: () => this.name,
      platform: {
        pause: (ms) => process.sleep(ms * 1000),
        random: () => draws.below(2 ** 20) / 2 ** 20,
        newId: () => `${draws.next()}-${draws.next()}-${draws.next()}`,
      },
    })
  }

  /** Durable at once, except in a broken resource. */
  #store(bytes: Uint8Array, writes: number): void {
    const before = this.#cell.value
    this.#cell.set({ bytes, revision: before.revision + 1, writes: before.writes + writes })
    if (this.#options.acknowledgesBeforeSync !== true) this.#cell.commit()
    else this.process.after(LATE_SYNC_US, () => this.#cell.commit())
  }

  async #handle(process: Process, guard: CasGuard, question: ResourceQuestion): Promise<ResourceAnswer> {
    try {
      if (this.kind === 'V' && question.action === 'write') await this.#verify(process, question)
      const token = await this.#carryOut(guard, question)
      this.#record(question, true, token)
      return { ok: true, value: this.value, version: this.#cell.value.writes }
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      this.#record(question, false, this.#tokenOf(question.header), error.message)
      return { ok: false, code: error.code, message: error.message }
    }
  }

  /**
   * The store answers at once, and the world lets all promises of a turn continue before anything else comes: what the guard
   * does here is one step. Returns the token. @throws StaleTokenError, FencingRequiredError
   */
  async #carryOut(guard: CasGuard, { action, header, value = 0 }: ResourceQuestion): Promise<bigint | undefined> {
    if (this.#compares(action)) {
      const hold = holdOfRequest({ 'fencing-token': header })
      if (action === 'read') await guard.open(hold)
      else if (this.kind === 'G') await guard.write(hold, String(value))
      else await guard.with(hold, (object) => object.put(String(value)))
    } else if (action !== 'read') this.#store(textOf(action === 'effect' ? this.value + 1 : value), 1)
    return this.#tokenOf(header)
  }

  #compares(action: ResourceQuestion['action']): boolean {
    const opens = this.kind === 'G*' || (this.kind === 'V' && this.#options.mark === true)
    return action === 'read' ? opens : action === 'write' && (opens || this.kind === 'G')
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
    const { value, mark } = this
    const version = this.#cell.value.writes
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

/** Names the write that has put the value there; another opening leaves it. */
function writeOf(bytes: Uint8Array): string {
  return isEnvelope(bytes) ? decodeEnvelope(bytes).write : ''
}

function textOf(value: number): Uint8Array {
  return new TextEncoder().encode(String(value))
}

function numberOf(bytes: Uint8Array | null): number {
  return bytes === null ? 0 : Number(new TextDecoder().decode(bytes))
}
