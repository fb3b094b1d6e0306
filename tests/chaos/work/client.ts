// A client process of the chaos run: takes locks, writes to the guarded resource, and notes all that it sees.
import { setTimeout as sleep } from 'node:timers/promises'
import { handHeld } from '@leasehold/fence'
import { BusyError, createLocks, type Hold, LeaseholdError, type Locks, VersionConflictError } from 'leasehold'
import { SeededRandom } from '../random.js'
import { type Call, Journal, type Judge, machineMicros } from './journal.js'
import { Resource } from './resource.js'

export interface ClientSettings {
  readonly name: string
  readonly url: string
  readonly journal: string
  readonly resource: string
  readonly seed: number
}

/** Short, so that sessions end in the middle of faults. */
const TTL_MS = 3_000
/** Long, so that nothing but a very long fault ends them. */
const LONG_TTL_MS = 120_000
const WAIT_MS = 4_000
const EXCLUSIVE_LOCKS = ['unit/a', 'unit/b', 'unit/c']
const SHARED_LOCKS = ['rw/a', 'rw/b']
const PERMITS = { name: 'permits/a', permits: 3 }
const REGISTERS = ['register/a', 'register/b']
const LONG_HOLDS = 3
const PAUSE_MS_MAX = 120
/** A unit in so many sleeps longer than the TTL before it writes. */
const LONG_PAUSE_ONE_IN = 40
const KEEP_EVERY_MS = 1_500

interface Taking {
  readonly judge: Exclude<Judge, 'register'>
  readonly key: string
  readonly mode?: 'shared'
  readonly permits?: number
  readonly hurried: boolean
}

/** A hold under the journal's eyes. */
interface Watched {
  readonly hold: Hold
  /** When it was last seen held. */
  seenHeldAt: number
  readonly call: Omit<Call, 'op'>
}

class ClientProcess {
  readonly #journal: Journal
  readonly #resource: Resource
  readonly #random: SeededRandom
  readonly #clients: Locks[] = []
  #owners = 0
  #ending = false

  readonly #settings: ClientSettings

  constructor(settings: ClientSettings) {
    this.#settings = settings
    this.#journal = new Journal(settings.journal)
    this.#resource = new Resource(settings.resource)
    this.#random = new SeededRandom(settings.seed)
  }

  stop(): void {
    this.#ending = true
  }

  async run(): Promise<void> {
    const loops = [
      this.#loop('units', (locks) => this.#unit(locks)),
      this.#loop('units', (locks) => this.#unit(locks)),
      this.#loop('shared', (locks) => this.#shared(locks)),
      this.#loop('permits', (locks) => this.#permit(locks)),
      this.#loop('registers', (locks) => this.#register(locks)),
      this.#loop('kept', (locks) => this.#kept(locks)),
      this.#longHolds(),
    ]
    await Promise.all(loops)
    await Promise.all(this.#clients.map((locks) => locks.close()))
    this.#resource.close()
    this.#journal.close()
  }

  #client(ttl: number): Locks {
    const locks = createLocks(this.#settings.url, { ttl, wait: WAIT_MS, clientName: this.#settings.name })
    this.#clients.push(locks)
    return locks
  }

  async #loop(of: string, step: (locks: Locks) => Promise<void>): Promise<void> {
    const locks = this.#client(TTL_MS)
    while (!this.#ending) {
      try {
        await step(locks)
      } catch (error) {
        this.#journal.note({ note: 'error', of, code: codeOf(error) })
      }
      await sleep(this.#random.between(5, PAUSE_MS_MAX))
    }
  }

  /** Acquire, read, think, write, release: an increment of a counter that no one may lose. */
  async #unit(locks: Locks): Promise<void> {
    const key = this.#random.pick(EXCLUSIVE_LOCKS)
    const one = await this.#take(locks, { judge: 'fenced-mutex', key, hurried: this.#random.chance(0.2) })
    if (one === undefined) return
    const { hold } = one
    const owner = one.call.owner as string
    const { token } = hold
    try {
      const before = await this.#resource.open(hold, owner)
      this.#look(one)
      const tooLong = this.#random.between(1, LONG_PAUSE_ONE_IN) === 1
      if (tooLong) this.#freeze(TTL_MS + this.#random.between(200, 1_500))
      else await sleep(this.#random.between(0, PAUSE_MS_MAX))
      this.#look(one)
      // After a pause that was too long a careless holder writes all the same: only the guard stands in its way.
      await this.#resource.write(tooLong ? handHeld(key, token) : hold, owner, before)
      this.#journal.note({ note: 'written', lock: key, token: String(token), before, after: before + 1 })
    } catch (error) {
      if (codeOf(error) === 'stale-token') this.#journal.note({ note: 'refused', lock: key, token: String(token) })
      else this.#journal.note({ note: 'error', of: 'effect', code: codeOf(error) })
    }
    await this.#giveBack(one)
  }

  async #shared(locks: Locks): Promise<void> {
    const key = this.#random.pick(SHARED_LOCKS)
    const mode = this.#random.chance(0.75) ? { mode: 'shared' as const } : {}
    await this.#holdForAWhile(locks, { judge: 'rw', key, ...mode, hurried: this.#random.chance(0.3) })
  }

  async #permit(locks: Locks): Promise<void> {
    const { name, permits } = PERMITS
    await this.#holdForAWhile(locks, { judge: 'permits', key: name, permits, hurried: this.#random.chance(0.3) })
  }

  async #holdForAWhile(locks: Locks, taking: Taking): Promise<void> {
    const one = await this.#take(locks, taking)
    if (one === undefined) return
    await sleep(this.#random.between(0, PAUSE_MS_MAX * 2))
    this.#look(one)
    await this.#giveBack(one)
  }

  /** Reads, and changes what it has read. Values are never used twice, so that a version says as much as a value. */
  async #register(locks: Locks): Promise<void> {
    const key = this.#random.pick(REGISTERS)
    const register = locks.register(key)
    const reading = this.#journal.invoke({ judge: 'register', op: 'read', key })
    let entry: Awaited<ReturnType<typeof register.get>>
    try {
      entry = await register.get()
    } catch (error) {
      reading.fail()
      throw error
    }
    const from = (entry?.value ?? null) as string | null
    reading.ok({ result: from })
    if (this.#random.chance(0.4)) return
    const to = this.#newOwner()
    const call = this.#journal.invoke({ judge: 'register', op: 'cas', key, value: [from, to] })
    try {
      await register.put(to, { ifVersion: entry?.version ?? 0n })
      call.ok()
    } catch (error) {
      if (error instanceof VersionConflictError) call.fail()
      else call.unknown()
      throw error
    }
  }

  /** Holds that outlive their sessions: an acknowledged one is there until its release, whatever happens to members. */
  async #kept(locks: Locks): Promise<void> {
    await sleep(KEEP_EVERY_MS)
    const lock = `kept/${this.#newOwner()}`
    const hold = await locks.acquire(lock, { persistent: true })
    const id = String(hold.id)
    this.#journal.note({ note: 'kept', lock, id })
    if (this.#random.chance(0.5)) return
    await sleep(KEEP_EVERY_MS)
    this.#journal.note({ note: 'giving', lock, id })
    const { released } = await hold.release()
    if (released) this.#journal.note({ note: 'given', lock, id })
    else this.#journal.note({ note: 'long-lost', lock, id, why: 'a persistent hold was gone when it was released' })
  }

  /** A few holds for the whole life of this process, whose sessions outlast every fault. */
  async #longHolds(): Promise<void> {
    const locks = this.#client(LONG_TTL_MS)
    const holds: Hold[] = []
    while (!this.#ending) {
      if (holds.length < LONG_HOLDS) {
        const lock = `long/${this.#newOwner()}`
        try {
          const hold = await locks.acquire(lock)
          holds.push(hold)
          this.#journal.note({ note: 'long', lock, id: String(hold.id) })
          void hold.lost.then((lost) => {
            if (lost === null) return
            this.#journal.note({ note: 'long-lost', lock, id: String(hold.id), why: lost.message })
          })
        } catch (error) {
          this.#journal.note({ note: 'error', of: 'long', code: codeOf(error) })
        }
      }
      await sleep(200)
    }
  }

  async #take(locks: Locks, { judge, key, mode, permits, hurried }: Taking): Promise<Watched | undefined> {
    const owner = this.#newOwner()
    const terms = { ...(mode === undefined ? {} : { mode }), ...(permits === undefined ? {} : { permits }) }
    const call = this.#journal.invoke({ judge, op: 'acquire', key, owner, ...terms })
    try {
      const hold = await locks.acquire(key, { ...terms, ...(hurried ? { wait: 0 } : {}) })
      const { slot } = hold
      call.ok({ token: hold.tokenOf(key), ...(slot === undefined ? {} : { slot }) })
      const seenHeldAt = machineMicros()
      const seen = { judge, key, owner, ...terms, token: hold.tokenOf(key), ...(slot === undefined ? {} : { slot }) }
      return { hold, seenHeldAt, call: seen }
    } catch (error) {
      if (error instanceof BusyError) call.fail()
      else call.unknown()
      this.#journal.note({ note: 'error', of: 'acquire', code: codeOf(error) })
      return undefined
    }
  }

  /** Notes until when the hold was certainly held. The clock is read first: a pause in between makes it only earlier. */
  #look(one: Watched): void {
    const at = machineMicros()
    if (one.hold.state === 'held') one.seenHeldAt = at
  }

  async #giveBack(one: Watched): Promise<void> {
    this.#look(one)
    const { hold, call } = one
    // Held until now for certain; from now on it may end in either way.
    const end = this.#journal.invoke({ ...call, op: 'release' }, one.seenHeldAt)
    try {
      const { released } = await hold.release()
      if (released) end.ok()
      else end.unknown()
    } catch (error) {
      end.unknown()
      this.#journal.note({ note: 'error', of: 'release', code: codeOf(error) })
    }
  }

  /** Stops this whole process's work, as a long garbage collection or a suspended machine does. */
  #freeze(ms: number): void {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  }

  #newOwner(): string {
    return `${this.#settings.name}-${++this.#owners}`
  }
}

function codeOf(error: unknown): string {
  if (error instanceof LeaseholdError) return error.code
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

const client = new ClientProcess(JSON.parse(process.argv[2] as string) as ClientSettings)
process.on('SIGTERM', () => client.stop())
// Without the harness the journal has no reader.
process.stdin.resume().on('end', () => process.exit(1))
await client.run()
process.exit(0)
