import { type ClientPlatform, defaultPlatform } from '@leasehold/client'
import { cut, type PgClient } from './driver.js'

/** The longest limit, also without a session. */
export const LIMIT_MAX_MS = 5_000
const LIMIT_MIN_MS = 250
/** The share of the shortest TTL: after it, a reconnect and a renewal fit into the rest. */
const TTL_SHARE = 4
/** A large statement may take longer: this many bytes per millisecond. */
const BYTES_PER_MS = 1_000

/**
 * The time limit of a statement, shared by the connections of one engine: a quarter of the shortest TTL of its sessions, from
 * 250 ms to 5 s. Each timeout doubles the limit of the next connection, so that a slow database is not cut off again and
 * again; an answer within the original limit ends that.
 */
export class StatementLimit {
  readonly platform: ClientPlatform
  #shortestMs = LIMIT_MAX_MS
  #timeouts = 0

  constructor(platform: ClientPlatform = defaultPlatform) {
    this.platform = platform
  }

  get ms(): number {
    return Math.min(LIMIT_MAX_MS, this.#shortestMs * 2 ** this.#timeouts)
  }

  sessionOpened(ttlMs: number): void {
    this.#shortestMs = Math.max(LIMIT_MIN_MS, Math.min(this.#shortestMs, ttlMs / TTL_SHARE))
  }

  /**
   * Returns the result of `statement`, which was sent over `client`. When nothing arrives for `limitMs`, it cuts the
   * connection and rejects with a {@link StatementTimeout}, whatever the driver does.
   */
  async run<T>(client: PgClient, statement: Promise<T>, limitMs = this.ms, bytes = 0): Promise<T> {
    const { platform } = this
    const sentAt = platform.monotonicMs()
    let cancel = () => {}
    const late = new Promise<never>((_, reject) => {
      cancel = onSilence(platform, client, limitMs + bytes / BYTES_PER_MS, (silentMs) => {
        this.#timeouts = Math.min(this.#timeouts + 1, 16)
        reject(new StatementTimeout(silentMs))
        cut(client)
      })
    })
    // After a timeout the driver may reject it too.
    statement.catch(() => {})
    try {
      const result = await Promise.race([statement, late])
      if (platform.monotonicMs() - sentAt <= this.#shortestMs) this.#timeouts = 0
      return result
    } finally {
      cancel()
    }
  }
}

export class StatementTimeout extends Error {
  constructor(silentMs: number) {
    super(`no answer within ${Math.round(silentMs)} ms, so the connection was cut`)
  }
}

/**
 * Calls `silent` when nothing arrives for `limitMs`. In steps, because a timer that is late after a pause of this process runs
 * before the bytes that arrived meanwhile are read. Returns a function that cancels it.
 */
function onSilence(
  platform: ClientPlatform,
  client: PgClient,
  limitMs: number,
  silent: (silentMs: number) => void,
): () => void {
  let received = client.connection?.stream?.bytesRead
  let step = 0
  let cancel = () => {}
  const wait = () => {
    cancel = platform.after(limitMs / STEPS, look, true)
  }
  const look = () => {
    const now = client.connection?.stream?.bytesRead
    step = now === received ? step + 1 : 0
    received = now
    if (step < STEPS) wait()
    else silent(limitMs)
  }
  wait()
  return () => cancel()
}

const STEPS = 4
