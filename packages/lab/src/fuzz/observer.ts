import { parseCursor } from '@leasehold/client'
import type { SimulatedClient } from '../cluster/simulated-client.js'
import { codeOf, count } from './outcomes.js'
import type { Shared } from './shared.js'

/** Mean pause between two reads, in microseconds. */
const PAUSE_US = 300_000

/**
 * A client without a session: it reads registers, and watches. Nothing drives it to the leader, so that it stays with a
 * member that has lost the leadership, is behind, or takes a snapshot in.
 */
export class Observer {
  readonly #client: SimulatedClient
  readonly #shared: Shared

  constructor(client: SimulatedClient, shared: Shared) {
    this.#client = client
    this.#shared = shared
  }

  start(): void {
    const client = this.#client
    const shared = this.#shared
    client.process.soon(() => void this.#read())
    client.process.soon(() => void watchAll(client, shared))
  }

  async #read(): Promise<void> {
    const client = this.#client
    const shared = this.#shared
    const draw = client.process.random('reads')
    while (!shared.stopped) {
      const name = `cas${draw.below(shared.plan.locks)}`
      const read = shared.history.call(client.name, 'read', name)
      try {
        const entry = await client.locks.register(name).get()
        read.ok(entry ? String(entry.value) : null)
        count(shared.done, 'read')
      } catch (error) {
        count(shared.errors, `read ${codeOf(error)}`)
      }
      await client.process.sleep(1 + draw.tail(PAUSE_US))
    }
  }
}

/** Watches everything, from where it was when it was told of a gap. */
export async function watchAll(client: SimulatedClient, shared: Shared): Promise<void> {
  let from: string | undefined
  while (!shared.stopped && client.process.alive) {
    try {
      from ??= (await client.locks.query({ limit: 1 })).at
      const place = parseCursor(from)
      const record = shared.checks.watches.begin(client.name, { index: place.index, ordinal: place.ordinal })
      for await (const event of client.locks.watch({ from })) {
        const { index, ordinal } = parseCursor(event.cursor)
        record.places.push({ index, ordinal })
        from = event.cursor
      }
    } catch (error) {
      count(shared.errors, `watch ${codeOf(error)}`)
      if (codeOf(error) === 'gap') from = undefined
      await client.process.sleep(300_000)
    }
  }
}
