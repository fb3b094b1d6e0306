import { setTimeout as sleep } from 'node:timers/promises'
import { EpochChangedError, UnavailableError, WatchError } from '@leasehold/core'
import type { Locks } from 'leasehold'
import { innermost } from '../error-report.js'
import { type Listing, listing } from '../listing.js'

/** How often leases are queried again while a lock is held: renewals emit no events. */
const RENEWALS_MS = 2000
/** Shortest time between two queries, however many events arrive. */
const READ_GAP_MS = 150
/** Time between two attempts while the service is unreachable. */
const RETRY_MS = 500

export interface Query {
  readonly prefix?: string
  readonly name?: string
}

/** The last known state of the service. */
export interface Picture {
  readonly found: Listing
  /** When it was queried, by `performance.now()`. */
  readonly readAt: number
  /** Since when and why the service is unreachable; undefined while it is reachable. */
  readonly lost: Lost | undefined
}

export interface Lost {
  readonly since: number
  readonly why: string
}

/**
 * Shows the result of a query, and again after every change, until `signal` aborts. Changes come from the watch stream. While
 * the service is unreachable, the last result is shown as stale; it is refreshed once the service is back.
 * @throws errors of the first query, and later refusals; an unreachable service is no error after the first query
 */
export async function refresh(
  locks: Locks,
  query: Query,
  { show, signal }: { show: (picture: Picture) => void; signal: AbortSignal },
): Promise<void> {
  let picture: Picture = { found: await listing(locks, query), readAt: performance.now(), lost: undefined }
  show(picture)
  const onLost = (error: Error): void => {
    if (signal.aborted) return
    picture = { ...picture, lost: { since: picture.lost?.since ?? performance.now(), why: reasonOf(error) } }
    show(picture)
  }
  let changes: Changes | undefined
  const off = locks.on('status', (status) => {
    if (status.state === 'connecting' && status.lastError !== undefined) onLost(status.lastError)
    if (status.state === 'connected' && picture.lost !== undefined) changes?.poke()
  })
  const read = async (): Promise<void> => {
    picture = { found: await listing(locks, query), readAt: performance.now(), lost: undefined }
    show(picture)
  }
  const renewals = (): number | undefined =>
    picture.found.held.some((row) => row.remainingMs !== undefined) ? RENEWALS_MS : undefined
  try {
    while (!signal.aborted) {
      try {
        // Changes during the outage have no events.
        if (picture.lost !== undefined) await read()
        changes = new Changes(locks, query, picture.found.at, signal)
        for (await changes.next(renewals()); !signal.aborted; await changes.next(renewals())) {
          await read()
          await pause(READ_GAP_MS, signal)
        }
      } catch (error) {
        if (signal.aborted) return
        if (!isTransient(error)) throw error
        onLost(error as Error)
        await pause(RETRY_MS, signal)
      } finally {
        changes?.stop()
      }
    }
  } finally {
    off()
  }
}

/** A watch from one query on. It resolves `next` after every event. */
class Changes {
  readonly #controller = new AbortController()
  readonly #stop: AbortSignal
  #happened = false
  #failure: unknown
  #wake: () => void = () => {}

  constructor(locks: Locks, query: Query, from: string, signal: AbortSignal) {
    this.#stop = AbortSignal.any([signal, this.#controller.signal])
    this.#stop.addEventListener('abort', () => this.#wake())
    this.#watch(locks, { prefix: query.prefix ?? query.name ?? '', from, signal: this.#stop }).catch(
      (error: unknown) => {
        this.#failure = error
        this.#wake()
      },
    )
  }

  /** Resolves after the next event, or after `limitMs`. Rejects if the watch has failed. */
  async next(limitMs: number | undefined): Promise<void> {
    if (!this.#happened && this.#failure === undefined && !this.#stop.aborted) {
      await new Promise<void>((resolve) => {
        const timer = limitMs === undefined ? undefined : setTimeout(resolve, limitMs)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    if (this.#failure !== undefined) throw this.#failure
    this.#happened = false
  }

  /** Resolves `next` without an event. */
  poke(): void {
    this.#happened = true
    this.#wake()
  }

  stop(): void {
    this.#controller.abort()
  }

  async #watch(locks: Locks, options: { prefix: string; from: string; signal: AbortSignal }): Promise<void> {
    for await (const _ of locks.watch(options)) this.poke()
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}

/** Whether the query can be repeated: the service is unreachable, or the watch has missed events. */
function isTransient(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof WatchError || error instanceof EpochChangedError
}

/** Returns the message of the root cause. */
export function reasonOf(error: Error): string {
  const { message } = innermost(error)
  return message === '' ? error.message : message
}
