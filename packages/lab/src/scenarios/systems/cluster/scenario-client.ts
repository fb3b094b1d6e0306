import type { Hold, Locks } from '@leasehold/client'
import { LeaseholdError } from '@leasehold/core'
import type { SimulatedClient } from '../../../cluster/index.js'
import type { World } from '../../../world/index.js'
import type { Step } from '../../format.js'
import type { HeldBy, LockClient } from '../../system.js'
import { ClientNarrator } from './client-narrator.js'
import { endSentence, startSentence } from './narration.js'

type Act = Step & { readonly do: 'client' }
type Facts = Record<string, unknown>

type Acts = Readonly<Record<string, (step: Act) => Promise<Facts>>>

/**
 * Steps of a client of a cluster. Each leaves what came of it under `as` in the observation, at `facts.CLIENT.AS`; a failure
 * is what came of it, too (`error`: its code), and does not end the program.
 *
 * - `take` {lock or locks, as, …options of acquire}: `outcome` (granted, or the error's code), `at`, `token`, `slot`.
 * - `give` {hold}: `released`. `state` {hold}: `state`. `lost` {hold}: waits for the end; `reason`, `at`.
 * - `abort` {hold}: aborts that take. `close`: closes the client. `query` {name?}: `held`, `pending`, `sessions`.
 * - `get`, `put`, `delete` {key, value, ifVersion?: "seen", fence?: hold}: `value`, `done`.
 * - `watch` {for, from?}: `kinds`, in order; `mark`: where a later `watch` begins. `steal` {lock}.
 * - `hand` {hold, to}, `adopt` {from}: by the name of the baton. `campaign` {value}, `observe` {for}: `leaders`, in order.
 * - `many` {count}: so many sessions with a hold each. `queueUp` {count, hold}: so many acquires at once, each released after
 *   `hold` seconds; `inOrder`. `loop` {count, hold, data}: one after another, with so many
 *   bytes of data; `done`, `at`.
 */
export class ClusterClient implements LockClient {
  readonly facts: Facts = { warnings: 0, losses: 0 }
  readonly actions: Readonly<Record<string, (step: Act) => Promise<void>>>
  readonly #holds = new Map<string, Hold>()
  readonly #aborts = new Map<string, AbortController>()
  readonly #seen = new Map<string, bigint>()
  readonly #diary: ClientNarrator

  readonly #client: SimulatedClient
  /** Second 0 of the scenario; known once it has begun. */
  readonly #startUs: () => number
  readonly #batons: Map<string, string>

  constructor(client: SimulatedClient, startUs: () => number, batons: Map<string, string>) {
    this.#client = client
    this.#startUs = startUs
    this.#batons = batons
    this.#diary = new ClientNarrator(client)
    this.actions = Object.fromEntries(
      Object.entries({ ...this.#holdActs(), ...this.#serviceActs() }).map(([name, act]) => [
        name,
        (step: Act) => this.#record(name, step, act),
      ]),
    )
  }

  /** Steps that acquire, keep or end holds. */
  #holdActs(): Acts {
    return {
      take: (step) => this.#take(step),
      give: async (step) => {
        const hold = this.#hold(step)
        const releasing = hold.release()
        this.#client.forgets(hold)
        this.#diary.gives(hold)
        return { ...(await releasing) }
      },
      state: async (step) => ({ state: this.#hold(step).state }),
      lost: async (step) => {
        const lost = await this.#hold(step).lost
        return { reason: lost?.reason ?? 'released', at: this.#now() }
      },
      abort: async (step) => {
        this.#aborts.get(textOr(step.hold, 'take'))?.abort()
        return {}
      },
      hand: async (step) => {
        this.#batons.set(String(step.to), this.#hold(step).serialize())
        return { handed: true }
      },
      campaign: async (step) => {
        return this.#keep(step, await this.#locks.election('E').campaign({ value: String(step.value) }))
      },
      many: (step) => this.#many(step),
      queueUp: (step) => this.#queueUp(step),
      loop: (step) => this.#loop(step),
      adopt: async (step) => {
        const hold = await this.#locks.adopt(this.#batons.get(String(step.from)) ?? '')
        return this.#keep(step, hold)
      },
    }
  }

  /** Steps that ask or change something at the service. */
  #serviceActs(): Acts {
    return {
      close: async () => {
        await this.#locks.close()
        return { closed: true }
      },
      query: (step) => this.#query(step),
      get: (step) => this.#get(step),
      put: (step) => this.#put(step),
      delete: async (step) => {
        await this.#locks.register(String(step.key)).delete(this.#conditions(step))
        return { done: true }
      },
      watch: (step) => this.#watch(step),
      steal: async (step) => ({ ...(await this.#locks.steal(String(step.lock), { reason: 'by the scenario' })) }),
      mark: async () => {
        this.#marked = (await this.#locks.query({ limit: 1 })).at
        return { marked: true }
      },
      observe: (step) => this.#observe(step),
    }
  }

  async acquire(lock: string, options: Readonly<Record<string, unknown>>): Promise<HeldBy | undefined> {
    let hold: Hold
    try {
      hold = await this.#locks.acquire(lock, options)
    } catch (error) {
      this.facts.acquire = { error: codeOf(error) }
      return undefined
    }
    this.#client.believes(hold)
    let released = false
    return {
      token: hold.token,
      guardable: hold,
      isValid: () => !released && hold.remaining() > 0,
      release: async () => {
        released = true
        this.#client.forgets(hold)
        try {
          await hold.release()
        } catch (error) {
          this.facts.release = { error: codeOf(error) }
        }
      },
    }
  }

  get #locks(): Locks {
    return this.#client.locks
  }

  get #world(): World {
    return this.#client.machine.world
  }

  #now(): number {
    return Math.round((this.#world.nowUs - this.#startUs()) / 1000) / 1000
  }

  async #record(name: string, step: Act, act: (step: Act) => Promise<Facts>): Promise<void> {
    const as = textOr(step.as, name)
    this.facts[as] = { outcome: 'open' }
    this.#tell(startSentence(step))
    let facts: Facts
    try {
      facts = await act(step)
    } catch (error) {
      // A wrong scenario, and not an answer of the service.
      if (!(error instanceof LeaseholdError)) throw error
      facts = { outcome: error.code, error: error.code, at: this.#now() }
    }
    this.facts[as] = facts
    this.#tell(endSentence(step, facts))
  }

  #tell(text: string | undefined): void {
    if (text !== undefined) this.#diary.says(text)
  }

  async #take({
    do: _do,
    action: _action,
    background: _background,
    as: _as,
    lock,
    locks,
    ...options
  }: Act): Promise<Facts> {
    const controller = this.#client.platform.abortController()
    const as = textOr(_as, 'take')
    this.#aborts.set(as, controller)
    const names = (locks ?? lock ?? 'L') as string
    const hold = await this.#locks.acquire(names, { ...options, signal: controller.signal })
    return this.#keep({ do: 'client', action: 'take', as }, hold)
  }

  #keep(step: Act, hold: Hold): Facts {
    const as = textOr(step.as, step.action)
    this.#holds.set(as, hold)
    this.#client.believes(hold)
    this.#diary.has(hold)
    hold.on('warning', () => {
      this.facts.warnings = Number(this.facts.warnings) + 1
    })
    void hold.lost.then((lost) => {
      if (!lost) return
      this.facts[`${as} lost`] = { reason: lost.reason, at: this.#now() }
      this.facts.losses = Number(this.facts.losses) + 1
    })
    const { slot } = hold
    const wide = hold.token > 2n ** 53n
    return {
      outcome: 'granted',
      at: this.#now(),
      token: String(hold.token),
      wide,
      ...(slot === undefined ? {} : { slot }),
    }
  }

  #hold(step: Act): Hold {
    const name = textOr(step.hold, 'take')
    const hold = this.#holds.get(name)
    if (!hold) throw new Error(`${this.#client.name} has no hold ${name}`)
    return hold
  }

  async #query(step: Act): Promise<Facts> {
    const options = {
      limit: 100,
      ...(step.name === undefined ? {} : { name: textOr(step.name, '') }),
      stale: step.stale === true,
    }
    const { held, pending, sessions } = await this.#locks.query(options)
    return {
      held: held.map(({ client }) => client),
      pending: pending.map(({ client }) => client),
      remainingMs: Math.round(held[0]?.remainingMs ?? 0),
      sessions: sessions.length,
      at: this.#now(),
    }
  }

  async #get(step: Act): Promise<Facts> {
    const key = String(step.key)
    const entry = await this.#locks.register(key).get({ stale: step.stale === true })
    this.#seen.set(key, entry?.version ?? 0n)
    return { value: entry?.value ?? null, at: this.#now() }
  }

  async #put(step: Act): Promise<Facts> {
    await this.#locks.register(String(step.key)).put(step.value, this.#conditions(step))
    return { done: true, at: this.#now() }
  }

  #conditions(step: Act): { ifVersion?: bigint; fence?: Hold } {
    return {
      ...(step.ifVersion === 'seen' ? { ifVersion: this.#seen.get(String(step.key)) ?? 0n } : {}),
      ...(typeof step.ifVersion === 'string' && step.ifVersion !== 'seen' ? { ifVersion: BigInt(step.ifVersion) } : {}),
      ...(step.fence === undefined ? {} : { fence: this.#hold({ ...step, hold: step.fence }) }),
    }
  }

  async #watch(step: Act): Promise<Facts> {
    const controller = this.#client.platform.abortController()
    const cancel = this.#client.process.after(Number(step.for) * 1_000_000, () => controller.abort())
    const kinds: string[] = []
    const from = step.from === 'mark' ? this.#marked : (await this.#locks.query({ limit: 1 })).at
    const record = this.#client.watches(from)
    try {
      for await (const event of this.#locks.watch({ from, signal: controller.signal })) {
        kinds.push(event.kind)
        record(event.cursor)
      }
    } catch (error) {
      return { kinds, count: kinds.length, end: codeOf(error) }
    } finally {
      cancel()
    }
    return { kinds, count: kinds.length, end: 'aborted' }
  }

  #marked = ''

  async #observe(step: Act): Promise<Facts> {
    const controller = this.#client.platform.abortController()
    this.#client.process.after(Number(step.for) * 1_000_000, () => controller.abort())
    const leaders: (string | null)[] = []
    try {
      for await (const leader of this.#locks.election('E').observe({ signal: controller.signal })) {
        leaders.push(leader?.value ?? null)
      }
    } catch (error) {
      return { leaders, end: codeOf(error) }
    }
    return { leaders }
  }

  /** One session for each time to live. */
  async #many(step: Act): Promise<Facts> {
    const ttl = Number(step.ttl ?? 10) * 1000
    const all = Array.from({ length: Number(step.count) }, (_, i) => this.#locks.acquire(`many${i}`, { ttl: ttl + i }))
    const holds = await Promise.all(all)
    return { granted: holds.length, at: this.#now() }
  }

  async #queueUp(step: Act): Promise<Facts> {
    const order: number[] = []
    const one = async (i: number): Promise<void> => {
      const hold = await this.#locks.acquire(textOr(step.lock, 'L'), { wait: '1h' })
      order.push(i)
      await this.#client.process.sleep(Number(step.hold ?? 0.01) * 1_000_000)
      await hold.release()
    }
    await Promise.all(Array.from({ length: Number(step.count) }, (_, i) => one(i)))
    return { granted: order.length, inOrder: order.every((i, at) => i === at), at: this.#now() }
  }

  /** Failures are lived with: what was not granted is asked for again. */
  async #loop({ count, hold: holdFor, lock, locks, mode, data }: Act): Promise<Facts> {
    let done = 0
    let failed = 0
    const options = {
      wait: '5m',
      ...(mode === undefined ? {} : { mode: mode as 'shared' }),
      ...(data === undefined ? {} : { data: 'data'.repeat(Number(data) / 4) }),
    }
    while (done < Number(count)) {
      try {
        const hold = await this.#locks.acquire((locks ?? lock ?? 'L') as string, options)
        this.#client.believes(hold)
        await this.#client.process.sleep(Number(holdFor ?? 0.01) * 1_000_000)
        const releasing = hold.release()
        this.#client.forgets(hold)
        await releasing
        done++
      } catch (error) {
        if (!(error instanceof LeaseholdError)) throw error
        failed++
        await this.#client.process.sleep(RETRY_US)
      }
    }
    return { done, failed, at: this.#now() }
  }
}

const RETRY_US = 50_000

/** What a scenario gives as a text. */
function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

function codeOf(error: unknown): string {
  return error instanceof LeaseholdError ? error.code : (error as Error).message
}
