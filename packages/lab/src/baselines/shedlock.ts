import type { HeldBy, LockClient, LockSystem } from '../scenarios/system.js'
import { type Process, RpcClient, serveRpc, type World } from '../world/index.js'

/** `{ "kind": "shedlock", "atMost": 5, "time": "caller" | "database" }`; times are seconds. */
export interface ShedlockSpec {
  /** `lockAtMostFor`. */
  readonly atMost?: number
  /** Where "now" and the expiry are computed: the caller (the default of most providers), or the database in the statement. */
  readonly time?: 'caller' | 'database'
}

interface Update {
  readonly lock: string
  /** Milliseconds; undefined: the database's own clock. */
  readonly nowMs: number | undefined
  readonly untilMs: number | undefined
  readonly unlock?: boolean
}

const PORT = 'sql'
const SECOND = 1_000_000
const MS = 1000
const ANSWER_WAIT_US = 5 * SECOND

/**
 * The row lock of ShedLock: `UPDATE … SET lock_until = :until WHERE name = :name AND lock_until <= :now`. One updated row
 * means that the lock was taken. With `time: caller` both values are computed in the application before the statement is
 * sent. There is no check afterwards: the hold counts until the task has ended.
 */
export function shedlock(world: World, spec: ShedlockSpec): LockSystem {
  const process = world.machine('DB').spawn({})
  const rows = new Map<string, number>()
  serveRpc<Update, { readonly updated: number }>(process, PORT, ({ lock, nowMs, untilMs, unlock }, reply) => {
    const clockMs = Math.floor(process.machine.clockUs('wall') / MS)
    const now = nowMs ?? clockMs
    const until = untilMs ?? (unlock === true ? clockMs : clockMs + (spec.atMost ?? 5) * MS)
    const isFree = unlock === true || (rows.get(lock) ?? 0) <= now
    if (isFree) rows.set(lock, until)
    reply({ updated: isFree ? 1 : 0 }, { text: isFree ? '1 row' : '0 rows' })
  })
  return { members: ['DB'], overlapViolates: true, client: (client) => new ShedlockClient(client, spec) }
}

class ShedlockClient implements LockClient {
  readonly #process: Process
  readonly #spec: ShedlockSpec
  readonly #rpc: RpcClient

  constructor(process: Process, spec: ShedlockSpec) {
    this.#process = process
    this.#spec = spec
    this.#rpc = RpcClient.of(process)
  }

  async acquire(lock: string): Promise<HeldBy | undefined> {
    const own = this.#spec.time !== 'database'
    const nowMs = own ? this.#wallMs() : undefined
    const untilMs = nowMs === undefined ? undefined : nowMs + (this.#spec.atMost ?? 5) * MS
    await this.#process.point('in acquire')
    const answer = await this.#update({ lock, nowMs, untilMs }, 'UPDATE … lock_until')
    if (answer?.updated !== 1) return undefined
    return {
      token: undefined,
      guardable: undefined,
      isValid: () => true,
      release: async () => {
        const now = own ? this.#wallMs() : undefined
        await this.#update({ lock, nowMs: now, untilMs: now, unlock: true }, 'unlock')
      },
    }
  }

  #update(update: Update, text: string): Promise<{ readonly updated: number } | undefined> {
    return this.#rpc.ask({ machine: 'DB', port: PORT }, update, ANSWER_WAIT_US, { text })
  }

  #wallMs(): number {
    return Math.floor(this.#process.machine.clockUs('wall') / MS)
  }
}
