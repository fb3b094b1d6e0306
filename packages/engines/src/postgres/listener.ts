import type { ClientPlatform } from '@leasehold/client'
import { clientOptions } from './database.js'
import { cut, type PgClient, type PgDriver } from './driver.js'
import type { StatementLimit } from './statement-limit.js'
import type { PostgresUrl } from './url.js'

/** Pauses between attempts to listen, doubling. */
const AGAIN_FIRST_MS = 100
const AGAIN_MAX_MS = 5_000
/** A notification to this client must arrive within this: a pooler in transaction mode accepts LISTEN without effect. */
const PROBE_MS = 2_000
/** A connection that was silent for this long is checked, because a lost one may look open for minutes. */
const CHECK_MS = 3_000

export interface ListenerOptions {
  readonly platform: ClientPlatform
  readonly driver: PgDriver
  readonly place: PostgresUrl
  readonly timeoutMs: number
  readonly ssl?: unknown
  readonly limit: StatementLimit
  /** Whether this client would notice a missed notification. */
  readonly isNeeded: () => boolean
  /** Sends a notification over the other connection. */
  readonly probe: (payload: string) => Promise<void>
  readonly notified: (index: number) => void
  /** Notifications arrive from now on, or no longer. */
  readonly works: (works: boolean) => void
}

/**
 * The connection that LISTENs.
 *
 * - *connecting*, *probing* (waits for a notification to itself), *works*, *pausing* (broken, or the probe was lost; the
 *   next attempt follows), *closed*. While it does not work, the member polls the log.
 */
export class Listener {
  readonly #options: ListenerOptions
  #client: PgClient | undefined
  #works = false
  #closed = false
  #failures = 0
  #heard = false
  #cancelTimer: () => void = () => {}

  constructor(options: ListenerOptions) {
    this.#options = options
    void this.#connect()
  }

  close(): void {
    this.#closed = true
    this.#cancelTimer()
    const client = this.#client
    this.#client = undefined
    if (client) cut(client)
  }

  async #connect(): Promise<void> {
    const { driver, place, notified, platform } = this.#options
    const client = new driver.Client(clientOptions(place.listenString, this.#options))
    this.#client = client
    const failed = () => this.#failed(client)
    client.on('error', failed)
    client.on('end', failed)
    const probe = `probe ${Array.from(platform.randomBytes(8)).join('.')}`
    client.on('notification', ({ payload = '' }) => {
      this.#heard = true
      if (payload === probe) this.#arrived(client)
      else notified(Number(payload))
    })
    try {
      await client.connect()
      await this.#limited(client, `LISTEN "${place.schema}"`)
      if (this.#client !== client) return
      this.#cancelTimer = platform.after(PROBE_MS, failed)
      // Over the other connection: a pooler's connection would receive notifications of its own statements.
      await this.#options.probe(probe)
    } catch {
      failed()
    }
  }

  #arrived(client: PgClient): void {
    if (this.#client !== client || this.#works) return
    this.#cancelTimer()
    this.#failures = 0
    this.#works = true
    this.#checkLater(client)
    this.#options.works(true)
  }

  /** Checks the connection from time to time, with a statement that reaches no other client. */
  #checkLater(client: PgClient): void {
    this.#heard = false
    this.#cancelTimer = this.#options.platform.after(CHECK_MS, async () => {
      try {
        if (!this.#heard && this.#options.isNeeded()) await this.#limited(client, 'SELECT 1')
        if (this.#client === client) this.#checkLater(client)
      } catch {
        this.#failed(client)
      }
    })
  }

  async #limited(client: PgClient, text: string): Promise<void> {
    const { limit } = this.#options
    await limit.run(client, client.query(text), Math.min(PROBE_MS, limit.ms))
  }

  /** Not an error of a call: the member polls, and the connection is retried. */
  #failed(client: PgClient): void {
    if (this.#client !== client || this.#closed) return
    this.#client = undefined
    this.#cancelTimer()
    cut(client)
    if (this.#works) this.#options.works(false)
    this.#works = false
    const { platform } = this.#options
    const full = Math.min(AGAIN_MAX_MS, AGAIN_FIRST_MS * 2 ** Math.min(this.#failures++, 16))
    this.#cancelTimer = platform.after(full / 2 + (full / 2) * platform.random(), () => void this.#connect())
  }
}
