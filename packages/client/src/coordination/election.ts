import { DEFAULT_LIMITS, InvalidError } from '@leasehold/core'
import { liveState, type LiveStateContext } from './live-state.js'
import type { Hold } from '../hold/hold.js'
import { type AcquireOptions, checkKeys, describe, signalOf } from '../options.js'
import type { HeldRow, LocksView, WatchEvent } from '../namespace-view.js'

/** The leader of an election. */
export interface Leader {
  /** The value of its `campaign`. */
  readonly value: string
  /** The token of its term: greater than that of every earlier leader. */
  readonly token: bigint
  readonly id: bigint
  readonly client: string
}

export interface CampaignOptions extends Omit<AcquireOptions, 'mode' | 'permits' | 'data' | 'portable' | 'persistent'> {
  /** Shown to observers: an address, a host name. At most 4 KiB. */
  readonly value?: string
}

export interface ElectionContext extends LiveStateContext {
  acquire(name: string, options: AcquireOptions): Promise<Hold>
  request<T>(name: string, options: AcquireOptions, body: (hold: Hold) => T | Promise<T>): Promise<T>
  query(options: { name: string; limit: number }): Promise<LocksView>
}

/**
 * One leader at a time for a name. A leadership is a hold: it can be lost, has a token, and must be used with a guard.
 *
 * @example
 * const election = locks.election('scheduler')
 * await election.campaign({ value: 'host-1', signal }, async (leadership) => { … })
 */
export class Election {
  readonly name: string
  readonly #context: ElectionContext
  readonly #leaderships = new Set<Hold>()

  /** @internal Elections come from `locks.election(name)`. */
  constructor(context: ElectionContext, name: string) {
    this.#context = context
    this.name = name
  }

  /** Waits (without an end, unless `wait` says otherwise) to become the leader, and runs `body` as the leader. */
  campaign<T>(options: CampaignOptions, body: (leadership: Hold) => T | Promise<T>): Promise<T>
  /** Waits to become the leader. The caller releases the leadership, or calls `resign`. */
  campaign(options?: CampaignOptions): Promise<Hold>
  async campaign<T>(options: CampaignOptions = {}, body?: (leadership: Hold) => T | Promise<T>): Promise<T | Hold> {
    checkKeys(options, CAMPAIGN_KEYS, 'campaign')
    const { value, ...rest } = options
    if (
      value !== undefined &&
      (typeof value !== 'string' || new TextEncoder().encode(value).length > VALUE_BYTES_MAX)
    ) {
      throw new InvalidError(`value is a text of at most ${VALUE_BYTES_MAX} bytes, not ${describe(value)}`, {
        hint: "write value: 'host-1'",
      })
    }
    const acquire = { wait: Number.POSITIVE_INFINITY, ...rest, data: value ?? '' }
    if (!body) return this.#lead(await this.#context.acquire(this.name, acquire))
    return this.#context.request(this.name, acquire, (hold) => body(this.#lead(hold)))
  }

  /** Releases every leadership that this object has won; its waiting campaigns continue. Resolves when they are released. */
  async resign(): Promise<void> {
    await Promise.all([...this.#leaderships].map((leadership) => leadership.release()))
  }

  /** The leader now, or null if there is none. */
  async leader(): Promise<Leader | null> {
    return (await this.#read()).now
  }

  /** The leader now, and again after every change; null while there is none. */
  async *observe(options: { signal?: AbortSignal } = {}): AsyncGenerator<Leader | null, void, void> {
    checkKeys(options, ['signal'], 'observe')
    yield* liveState<Leader | null>(this.#context, this.name, signalOf(options.signal), {
      read: () => this.#read(),
      next: (event, shown) => this.#next(event, shown),
      same: (one, other) => one?.id === other?.id,
    })
  }

  async #read(): Promise<{ readonly now: Leader | null; readonly at: string }> {
    const { held, at } = await this.#context.query({ name: this.name, limit: 1 })
    return { now: leaderOf(held[0]), at }
  }

  /** The leader after an event; undefined: unchanged. */
  async #next(event: WatchEvent, shown: Leader | null): Promise<Leader | null | undefined> {
    if (event.kind === 'freed' && event.id === shown?.id) return null
    if (event.kind !== 'held' || event.id === shown?.id) return undefined
    if (!event.locks.some((lock) => lock.name === this.name)) return undefined
    const leader = await this.leader()
    // Another leader by now: the events of that change will follow.
    return leader?.id === event.id ? leader : undefined
  }

  #lead(hold: Hold): Hold {
    this.#leaderships.add(hold)
    void hold.lost.then(() => this.#leaderships.delete(hold))
    return hold
  }
}

const VALUE_BYTES_MAX = DEFAULT_LIMITS.dataBytes
const CAMPAIGN_KEYS = ['value', 'ttl', 'wait', 'margin', 'signal', 'lockDelay', 'renew', 'maxHold']

function leaderOf(row: HeldRow | undefined): Leader | null {
  const lock = row?.locks[0]
  if (!row || !lock) return null
  return { value: new TextDecoder().decode(row.data), token: lock.token, id: row.id, client: row.client }
}
