import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Locks, LocksOptions } from 'leasehold'
import { afterEach } from 'vitest'
import type { Fixture, RunningEngine } from '../fixture.js'

/** How long something that needs no waiting may take on a busy machine. */
export const SOON_MS = 30_000

/** The shortest TTL of a session that has to live on. */
const STEADY_TTL_MS = 2_000

/** The engine of a fixture, and the clients of the test that runs: each test has a namespace of its own. */
export class Context {
  engine: RunningEngine | undefined
  #namespace = fresh()
  readonly #clients: Locks[] = []

  constructor(readonly fixture: Fixture) {
    afterEach(() => this.closeAll())
  }

  get running(): RunningEngine {
    if (this.engine === undefined) throw new Error(`${this.fixture.name} does not run`)
    return this.engine
  }

  client(options: LocksOptions = {}): Locks {
    return this.#keep(this.running.client({ namespace: this.#namespace, ...options }))
  }

  /** A client behind the line that the test breaks. */
  lineClient(options: LocksOptions = {}): Locks {
    if (this.running.line === undefined) throw new Error(`${this.fixture.name} has no line`)
    return this.#keep(this.running.line.client({ namespace: this.#namespace, ...options }))
  }

  /** The TTL for tests of expiry: as short as the engine can. */
  get shortTtl(): `${number}ms` {
    return `${this.fixture.shortestTtlMs}ms`
  }

  /** The TTL where renewals must come in time: a busy machine may hold them up for a second. */
  get steadyTtlMs(): number {
    return Math.max(this.fixture.shortestTtlMs, STEADY_TTL_MS)
  }

  /** When a dead session must be over at the latest. */
  get expiryLimitMs(): number {
    return this.fixture.shortestTtlMs + this.fixture.expirySlackMs + SOON_MS
  }

  async closeAll(): Promise<void> {
    this.running.line?.open()
    await Promise.all(this.#clients.splice(0).map((locks) => locks.close()))
    this.#namespace = fresh()
  }

  #keep(locks: Locks): Locks {
    this.#clients.push(locks)
    return locks
  }
}

function fresh(): string {
  return `c${randomBytes(6).toString('hex')}`
}

/** Resolves when `condition` holds; rejects after {@link SOON_MS}. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, limitMs = SOON_MS) {
  const end = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`)
    await sleep(10)
  }
}

/** How many wait for a lock of the client's namespace. */
export async function pendingOf(locks: Locks, name: string): Promise<number> {
  return (await locks.query({ name })).pending.length
}

export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it was not rejected')
}
