import { fencingHeader } from '@leasehold/fence/http'
import { type Process, RESOURCE_PORT, type ResourceAnswer, type ResourceQuestion, RpcClient } from '../world/index.js'
import type { Step, UnitOutcome } from './format.js'
import type { HoldBook, HoldRecord } from './hold-book.js'
import type { HeldBy, LockClient } from './system.js'

export interface ProgramContext {
  readonly process: Process
  readonly client: LockClient
  readonly book: HoldBook
  /** When second 0 of the scenario is. */
  readonly startUs: number
  /** The resource that a step means. */
  readonly resource: (name: string | undefined) => string
  /** How long it waits for a resource; default {@link ANSWER_WAIT_US}. */
  readonly answerWaitUs?: number
}

/** How long a client waits for a resource. */
const ANSWER_WAIT_US = 200_000_000

/** A step that ends the program. */
class Outcome {
  constructor(readonly outcome: UnitOutcome) {}
}

/** Runs a client's program; every step can be stopped at its points. */
export class Program {
  outcome: UnitOutcome = 'unfinished'
  /** The step that it is at; undefined: none. */
  doing: Step | undefined
  readonly #context: ProgramContext
  readonly #rpc: RpcClient
  #held: { readonly by: HeldBy; readonly record: HoldRecord } | undefined
  /** What it has read last, by resource. */
  readonly #seen = new Map<string, { readonly value: number; readonly version: number }>()

  constructor(context: ProgramContext) {
    this.#context = context
    this.#rpc = RpcClient.of(context.process)
  }

  /** The hold that it works under. */
  get held(): { readonly by: HeldBy; readonly record: HoldRecord } | undefined {
    return this.#held
  }

  /** Runs steps, one after the other; what was read and taken before is still there. One call at a time. */
  async run(steps: readonly Step[]): Promise<void> {
    const { process } = this.#context
    try {
      for (const step of steps) {
        this.doing = step
        await process.point(`before ${step.do}`)
        await this.#step(step)
        await process.point(`after ${step.do}`)
      }
      this.outcome = 'done'
    } catch (error) {
      if (!(error instanceof Outcome)) throw error
      this.outcome = error.outcome
      this.#say(WORDS[error.outcome])
      if (this.#held) await this.#release()
    } finally {
      this.doing = undefined
    }
  }

  async #step(step: Step): Promise<void> {
    const { process, startUs } = this.#context
    switch (step.do) {
      case 'wait':
        return process.sleep(Math.max(0, startUs + seconds(step.until) - process.world.nowUs))
      case 'work':
        return process.sleep(seconds(step.for))
      case 'acquire':
        return this.#acquire(step)
      case 'read':
        return this.#read(step.resource)
      case 'write':
        return this.#write(step.resources ?? [step.resource], step.check !== false)
      case 'effect':
        return this.#effect(step.resource, step.check !== false)
      case 'release':
        return this.#release()
      case 'client':
        return this.#own(step)
    }
  }

  async #own(step: Step & { do: 'client' }): Promise<void> {
    const act = this.#context.client.actions?.[step.action]
    if (act === undefined) throw new Error(`clients of this system cannot ${step.action}`)
    const acting = act(step)
    if (step.background !== true) await acting
  }

  async #acquire({ do: _do, lock = 'L', ...options }: Step & { do: 'acquire' }): Promise<void> {
    const { client, process, book } = this.#context
    const askedUs = process.world.nowUs
    this.#say(`asks for ${lock}`, { lock })
    const by = await client.acquire(lock, options)
    if (by === undefined) throw new Outcome('not-acquired')
    const record = book.granted(process.name, lock, by, askedUs, () => process.alive)
    this.#held = { by, record }
    this.#say(`has ${lock}`, { lock, ...(by.token === undefined ? {} : { token: String(by.token) }) })
  }

  async #read(resource: string | undefined): Promise<void> {
    const answer = await this.#ask(resource, { action: 'read', ...this.#header(), unit: this.#unit(resource) })
    this.#seen.set(this.#context.resource(resource), { value: answer.value, version: answer.version })
  }

  async #write(resources: readonly (string | undefined)[], check: boolean): Promise<void> {
    if (check) this.#check()
    // The header is made before the message leaves: its own check of the hold is the last one.
    const header = this.#header()
    await this.#context.process.point('in write')
    const asked = resources.map((resource) => {
      const value = this.#seenOf(resource).value + 1
      return this.#ask(resource, { action: 'write', ...header, value, unit: this.#unit(resource) })
    })
    const failed = (await Promise.allSettled(asked)).find((one) => one.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  async #effect(resource: string | undefined, check: boolean): Promise<void> {
    if (check) this.#check()
    const { process } = this.#context
    await process.point('in effect')
    const to = { machine: this.#context.resource(resource), port: RESOURCE_PORT }
    const body: ResourceQuestion = { action: 'effect', unit: this.#unit(resource) }
    this.#rpc.tell(to, body, { text: 'effect', ...this.#token() })
  }

  async #release(): Promise<void> {
    const held = this.#held
    if (held === undefined) return
    this.#held = undefined
    const isLate = !held.by.isValid()
    this.#context.book.over(held.record, 'released')
    const { lock } = held.record
    this.#say(`releases ${lock}${isLate ? ', although its lease has expired' : ''}`, { lock })
    await held.by.release()
  }

  async #ask(resource: string | undefined, body: ResourceQuestion): Promise<ResourceAnswer & { ok: true }> {
    const to = { machine: this.#context.resource(resource), port: RESOURCE_PORT }
    const text = body.action === 'write' ? `write ${body.value}` : body.action
    const answer = await this.#rpc.ask<ResourceAnswer>(to, body, this.#context.answerWaitUs ?? ANSWER_WAIT_US, {
      text,
      ...this.#token(),
    })
    if (answer === undefined) throw new Outcome('unknown')
    if (!answer.ok) throw new Outcome('refused')
    return answer
  }

  #check(): void {
    if (this.#held?.by.isValid() === false) throw new Outcome('lost')
  }

  #header(): { header?: string } {
    const { guardable } = this.#held?.by ?? {}
    if (guardable === undefined) return {}
    try {
      return { header: fencingHeader(guardable) }
    } catch {
      throw new Outcome('lost')
    }
  }

  #token(): { token?: string } {
    const token = this.#held?.by.token
    return token === undefined ? {} : { token: String(token) }
  }

  #unit(resource: string | undefined): ResourceQuestion['unit'] {
    const { version } = this.#seenOf(resource)
    return { client: this.#context.process.name, hold: this.#held?.record.number ?? 0, readVersion: version }
  }

  #seenOf(resource: string | undefined): { readonly value: number; readonly version: number } {
    return this.#seen.get(this.#context.resource(resource)) ?? { value: 0, version: 0 }
  }

  #say(text: string, more: { lock?: string; token?: string } = {}): void {
    const { process } = this.#context
    process.world.timeline.add({ kind: 'client', who: process.name, text, ...more })
  }
}

const WORDS: Record<UnitOutcome, string> = {
  done: 'is done',
  refused: 'is refused: its token is stale; the unit has failed',
  lost: 'knows that its hold is lost, and abandons the unit',
  'not-acquired': 'did not get the lock',
  unknown: 'got no answer',
  unfinished: 'is not done',
}

export function seconds(value: number): number {
  return Math.round(value * 1_000_000)
}
