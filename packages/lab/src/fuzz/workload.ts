import type { AcquireCallOptions, Hold, LockNames } from '@leasehold/client'
import { type HoldId, splitToken } from '@leasehold/core'
import { fence as casFence } from '@leasehold/fence/cas'
import { fence as registerFence } from '@leasehold/fence/register'
import type { AcquireRecord } from '../checkers/lock-history.js'
import type { SimulatedClient } from '../cluster/simulated-client.js'
import type { RandomStream } from '../world/random.js'
import { watchAll } from './observer.js'
import { codeOf, count, DEFINITE } from './outcomes.js'
import { type Work, WORKS } from './plan.js'
import type { Shared, Units } from './shared.js'

export const PERMITS = 2
/** Longest lock delay. */
export const DELAY_MAX_MS = 2_000
/** How long a kept hold is kept: the mean, and at most. */
const KEPT_US = 3_000_000
const KEPT_MAX_US = 6_000_000
/** A register takes 64 KiB. */
const BULK_BYTES_MAX = 60_000

/** What one client does, over and over, until the run stops it. Errors are what clients live with; they are counted. */
export class Worker {
  readonly #draw: RandomStream
  readonly #works: readonly Work[]

  readonly #client: SimulatedClient
  readonly #shared: Shared

  constructor(client: SimulatedClient, shared: Shared) {
    this.#client = client
    this.#shared = shared
    this.#draw = client.process.random('work')
    const { work } = shared.plan
    this.#works = WORKS.flatMap((one) => Array.from({ length: work[one] }, () => one))
  }

  start(): void {
    const client = this.#client
    const shared = this.#shared
    const { process } = client
    const store = shared.store.connect(process)
    const ids = process.random('writes')
    const guard = casFence(store, {
      platform: {
        pause: (ms) => process.sleep(ms * 1000),
        random: () => ids.below(2 ** 20) / 2 ** 20,
        newId: () => `${ids.next()}-${ids.next()}-${ids.next()}`,
      },
    })
    this.#guard = guard
    process.soon(() => void this.#loop())
    process.soon(() => void watchAll(client, shared))
    if (this.#shared.plan.keepers) process.soon(() => void this.#keep())
  }

  #guard: ReturnType<typeof casFence> | undefined

  async #loop(): Promise<void> {
    const client = this.#client
    const shared = this.#shared
    const draw = this.#draw
    const { process } = client
    while (!shared.stopped) {
      const work = this.#works[draw.below(Math.max(1, this.#works.length))]
      try {
        if (work) await this.#work(work)
        if (work) count(shared.done, work)
      } catch (error) {
        count(shared.errors, codeOf(error))
        await process.sleep(50_000)
      }
      await process.sleep(draw.tail(shared.plan.thinkMs * 1000) + 1)
    }
  }

  #work(work: Work): Promise<void> {
    const n = this.#draw.below(this.#shared.plan.locks)
    switch (work) {
      case 'unit':
        return this.#unit(`unit${n}`)
      case 'register':
        return this.#registerUnit(`reg${n}`)
      case 'shared':
        return this.#hold(`rw${n}`, { mode: this.#draw.chance(600_000) ? 'shared' : 'exclusive' }, 'rw')
      case 'permit':
        return this.#hold(`permit${n}`, { permits: PERMITS }, 'permits')
      case 'several':
        return this.#several()
      case 'try':
        return this.#hold(`unit${n}`, { wait: 0 }, 'mutex')
      case 'abort':
        return this.#abort(n)
      case 'cas':
        return this.#cas(`cas${n}`)
      case 'query':
        return this.#query()
      case 'handover':
        return this.#handover()
      case 'bulk':
        return this.#bulk()
    }
  }

  /** Acquire, read, compute, write, release, at a resource behind a guard. */
  async #unit(name: string): Promise<void> {
    const client = this.#client
    const guard = this.#guard
    const draw = this.#draw
    await this.#with(
      name,
      { lockDelay: draw.chance(200_000) ? draw.below(DELAY_MAX_MS) : 0 },
      'mutex',
      async (hold) => {
        const units = this.#unitsOf(name)
        let sent = false
        try {
          await guard?.with(hold, async (object) => {
            this.#shared.checks.marks.opens(name, hold.token, client.name)
            const value = numberOf(object.get())
            await client.process.sleep(1 + draw.tail((this.#shared.plan.workMs ?? 5) * 1000))
            units.unknown++
            sent = true
            await object.put(String(value + 1))
          })
          units.unknown--
          units.acknowledged++
        } catch (error) {
          if (sent && codeOf(error) !== 'unknown-outcome') units.unknown--
          if (codeOf(error) === 'stale-token') this.#refused(hold)
          throw error
        }
      },
    )
  }

  /** No client can have had a later token as long as this hold has the lock. */
  #refused(hold: Hold): void {
    const { violations, log } = this.#shared.checks
    if (!log.state.machine.holds.has(splitToken(hold.id).serial as HoldId)) return
    violations.report('I3', `the guard has refused hold ${hold.id} of ${this.#client.name}, which is the present one`)
  }

  async #registerUnit(name: string): Promise<void> {
    const client = this.#client
    await this.#with(name, {}, 'mutex', async (hold) => {
      const units = this.#unitsOf(`register ${name}`)
      let sent = false
      try {
        await registerFence<number>(client.locks.register(name)).with(hold, async (register) => {
          const value = (await register.get()) ?? 0
          const { workMs } = this.#shared.plan
          if (workMs !== undefined) await client.process.sleep(1 + this.#draw.tail(workMs * 1000))
          units.unknown++
          sent = true
          await register.put(value + 1)
        })
        units.unknown--
        units.acknowledged++
      } catch (error) {
        if (sent && DEFINITE.has(codeOf(error))) units.unknown--
        throw error
      }
    })
  }

  async #hold(name: string, options: AcquireCallOptions, kind: 'mutex' | 'rw' | 'permits'): Promise<void> {
    await this.#with(name, options, kind, async () => {
      // Some are slow, so that others queue up behind them.
      const meanUs = this.#draw.chance(150_000) ? 300_000 : 10_000
      await this.#client.process.sleep(1 + this.#draw.tail(meanUs))
    })
  }

  async #several(options: AcquireCallOptions = {}): Promise<void> {
    const { plan } = this.#shared
    const names = Array.from({ length: plan.locks + 1 }, (_, i) => `several${i}`)
    const first = this.#draw.below(names.length)
    const second = (first + 1 + this.#draw.below(names.length - 1)) % names.length
    const hold = await this.#client.locks.acquire([names[first], names[second]] as LockNames, this.#terms(options))
    this.#client.believes(hold)
    await this.#client.process.sleep(1 + this.#draw.tail(5000))
    await this.#release(hold)
  }

  /** Gives a wait up, of any kind: the one behind it may be one that can be granted beside the holders. */
  async #abort(n: number): Promise<void> {
    const client = this.#client
    const draw = this.#draw
    const controller = client.platform.abortController()
    const cancel = client.process.after(1 + this.#draw.tail(30_000), () => controller.abort())
    try {
      const { signal } = controller
      const turn = draw.below(3)
      if (turn === 0) await this.#hold(`unit${n}`, { signal }, 'mutex')
      else if (turn === 1) await this.#hold(`rw${n}`, { signal, mode: 'exclusive' }, 'rw')
      else await this.#several({ signal })
    } finally {
      cancel()
    }
  }

  async #cas(name: string): Promise<void> {
    const client = this.#client
    const shared = this.#shared
    const register = client.locks.register(name)
    const read = shared.history.call(client.name, 'read', name)
    const entry = await register.get()
    const before = entry ? String(entry.value) : null
    read.ok(before)
    await client.process.sleep(1 + this.#draw.tail(5000))
    const after = `${client.name}.${shared.history.operations.length}`
    const cas = shared.history.call(client.name, 'cas', name, [before, after])
    try {
      await register.put(after, { ifVersion: entry?.version ?? 0n })
      cas.ok()
    } catch (error) {
      if (codeOf(error) === 'version-conflict') cas.ok(false)
      else if (DEFINITE.has(codeOf(error))) cas.fail()
      throw error
    }
  }

  async #query(): Promise<void> {
    await this.#client.locks.query({ limit: 20, stale: this.#draw.chance(300_000) })
  }

  /** A large value: log files come to their end, are deleted, and snapshots are of many sectors. */
  async #bulk(): Promise<void> {
    const value = 'bulk'.repeat(this.#draw.below(BULK_BYTES_MAX / 4))
    await this.#client.locks.register(`bulk${this.#draw.below(2)}`).put(value)
  }

  /** Half of the time a hold is given away, otherwise one is taken over. */
  async #handover(): Promise<void> {
    const client = this.#client
    const shared = this.#shared
    const draw = this.#draw
    const text = shared.handed.shift()
    const hold =
      text === undefined
        ? await client.locks.acquire(`handed${draw.below(3)}`, this.#terms({ portable: true, wait: '2s' }))
        : await client.locks.adopt(text)
    client.believes(hold)
    await client.process.sleep(1 + draw.tail(5000))
    if (draw.chance(500_000) && hold.state === 'held') {
      shared.handed.push(hold.serialize())
      // Its session keeps it until another client adopts it, or for a while.
      await client.process.sleep(1 + draw.tail(200_000))
    }
    await this.#release(hold)
  }

  /** Beside the rest, one lock for long: until it is lost, or for some times the TTL. */
  async #keep(): Promise<void> {
    const client = this.#client
    const shared = this.#shared
    const { process } = client
    const draw = process.random('keep')
    while (!shared.stopped) {
      try {
        const hold = await client.locks.acquire(`kept${draw.below(shared.plan.clients)}`, this.#terms({}))
        client.believes(hold)
        await Promise.race([hold.lost, process.sleep(Math.min(draw.tail(KEPT_US), KEPT_MAX_US) + 1)])
        await this.#release(hold)
        count(shared.done, 'keep')
      } catch (error) {
        count(shared.errors, codeOf(error))
        await process.sleep(100_000)
      }
    }
  }

  /** Takes a lock, records what is seen of it, and releases it. */
  async #with(
    name: string,
    options: AcquireCallOptions,
    kind: 'mutex' | 'rw' | 'permits',
    body: (hold: Hold) => Promise<void>,
  ): Promise<void> {
    const client = this.#client
    const shared = this.#shared
    const more = kind === 'rw' ? { mode: options.mode as 'shared' } : kind === 'permits' ? { permits: PERMITS } : {}
    const record = shared.history.acquire(client.name, name, more)
    let hold: Hold
    try {
      hold = await client.locks.acquire(name, this.#terms(options))
    } catch (error) {
      if (DEFINITE.has(codeOf(error))) record.failed()
      throw error
    }
    record.granted(hold, name)
    client.believes(hold)
    try {
      await body(hold)
    } finally {
      await this.#release(hold, record)
    }
  }

  async #release(hold: Hold, record?: AcquireRecord): Promise<void> {
    record?.releasing()
    const wasHeld = hold.state === 'held'
    const releasing = hold.release()
    // What the client itself still calls held counts as held until the release has its answer.
    if (wasHeld && hold.state !== 'held') this.#client.forgets(hold)
    const { released } = await releasing
    this.#client.forgets(hold)
    if (released) record?.released()
  }

  #terms(options: AcquireCallOptions): AcquireCallOptions {
    const { ttlMs, dataBytes = 0 } = this.#shared.plan
    const data = dataBytes > 0 ? { data: this.#data(this.#draw.below(dataBytes)) } : {}
    return { ttl: ttlMs, wait: '3s', ...data, ...options }
  }

  /** What the owner says with its hold; some of it is zeros, as a disk has them that was never written. */
  #data(length: number): Uint8Array {
    const fill = this.#draw.chance(300_000) ? 0 : 1 + this.#draw.below(255)
    return new Uint8Array(length).fill(fill)
  }

  #unitsOf(name: string): Units {
    let units = this.#shared.units.get(name)
    if (!units) {
      units = { acknowledged: 0, unknown: 0 }
      this.#shared.units.set(name, units)
    }
    return units
  }
}

export function numberOf(bytes: Uint8Array | null): number {
  return bytes === null ? 0 : Number(new TextDecoder().decode(bytes))
}
