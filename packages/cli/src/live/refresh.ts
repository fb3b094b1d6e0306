import { setTimeout as sleep } from 'node:timers/promises'
import { EpochChangedError, UnavailableError, WatchError } from '@leasehold/core'
import type { Locks } from 'leasehold'
import { innermost } from '../error-report.js'
import { type Listing, listing } from '../listing.js'

/** Renewals make no events: what is left of a lease is read again this often, while there is one. */
const RENEWALS_MS = 2000
/** However many events come, the picture is read no more often than this. */
const READ_GAP_MS = 150
/** While the service is away. */
const RETRY_MS = 500

export interface Query {
  readonly prefix?: string
  readonly name?: string
}

/** What is known of the service at the moment. */
export interface Picture {
  readonly found: Listing
  /** When it was true, by `performance.now()`. */
  readonly readAt: number
  /** Since when, and why, it cannot be read again; undefined while all is well. */
  readonly lost: Lost | undefined
}

export interface Lost {
  readonly since: number
  readonly why: string
}

/**
 * Shows what the query finds, and again after every change, until `signal` aborts. Changes come from the watch stream. A lost
 * service is shown as lost, with the last picture, and read again as soon as it is back.
 * @throws whatever the first reading throws, and refusals later; a service that goes away later is no error
 */
export async function refresh(
  locks: Locks,
  query: Query,
  { show, signal }: { show: (picture: Picture) => void; signal: AbortSignal },
): Promise<void> {
  let picture: Picture = { found: await listing(locks, query), readAt: performance.now(), lost: undefined }
  show(picture)
  const losing = (error: Error): void => {
    if (signal.aborted) return
    picture = { ...picture, lost: { since: picture.lost?.since ?? performance.now(), why: reasonOf(error) } }
    show(picture)
  }
  let changes: Changes | undefined
  const off = locks.on('status', (status) => {
    if (status.state === 'connecting' && status.lastError !== undefined) losing(status.lastError)
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
        // After a failure there may be anything to see.
        if (picture.lost !== undefined) await read()
        changes = new Changes(locks, query, picture.found.at, signal)
        for (await changes.next(renewals()); !signal.aborted; await changes.next(renewals())) {
          await read()
          await pause(READ_GAP_MS, signal)
        }
      } catch (error) {
        if (signal.aborted) return
        if (!isPassing(error)) throw error
        losing(error as Error)
        await pause(RETRY_MS, signal)
      } finally {
        changes?.stop()
      }
    }
  } finally {
    off()
  }
}

/** The watch from one reading on: tells that something has happened since it was last asked. */
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

  /** Resolves after the next event, or after `limitMs`. Rejects when the watch has failed. */
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

  /** There is something to read, although no event says so. */
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

/** The service is away, or has moved on without us: what is shown is read again. */
function isPassing(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof WatchError || error instanceof EpochChangedError
}

/** Why something failed: what it began with. */
export function reasonOf(error: Error): string {
  const { message } = innermost(error)
  return message === '' ? error.message : message
}
