import { AccessError, InvalidError, type Serial, StorageError } from '@leasehold/core'
import { cut, errorOfPg, isMissing, isRetryable, type PgClient, type PgDriver, type PgRow } from './driver.js'
import { PAGE_ENTRIES, postgresSql, SCHEMA_VERSION, schemaIdentifier } from './sql/schema.js'
import { movedSql, SERVER_FUNCTIONS } from './sql/server-identity.js'
import { LIMIT_MAX_MS, type StatementLimit, StatementTimeout } from './statement-limit.js'
import type { PostgresUrl } from './url.js'

/** The position of an entry in the log. Logs that agree on one agree on everything before it. */
export interface Place {
  readonly index: number
  /** Drawn at random for each entry: a signed 64-bit number as decimal text. */
  readonly nonce: string
}

/** An entry of the log. `commands` undefined: the caller's own. */
export interface LogRow extends Place {
  readonly epoch: number
  readonly at: number
  readonly commands: Uint8Array | undefined
  /** The settings that the database itself puts before the commands. */
  readonly level: number | undefined
  readonly floor: Serial | undefined
}

export interface Loaded {
  readonly service: string
  /** What the log begins with. */
  readonly first: { readonly epoch: number; readonly level: number; readonly floor: Serial }
  readonly epoch: number
  /** The server is another one than that of the last entry: the next append raises the epoch. */
  readonly moved: boolean
  readonly doubts: Doubts
  readonly snapshot: (Place & { readonly state: Uint8Array }) | undefined
}

/** What weakens the guarantees on this server or for this role. */
export interface Doubts {
  readonly role: string
  /** Functions that this role may not call, or this server does not have. */
  readonly unreadable: readonly string[]
  /** The server's clock, if it is implausible. */
  readonly clock: string | undefined
  /** The role's `synchronous_commit` is `off`. */
  readonly asynchronous: boolean
}

export interface AppendOptions {
  readonly seen: Place
  readonly epoch: number
  /** At most this much time has passed since `seen` was read; undefined: not known. */
  readonly elapsedMs: number | undefined
  readonly nonce: string
  readonly commands: Uint8Array
  /** Only moves time: not needed when the log has grown. */
  readonly tick: boolean
  /** Notifies other clients. */
  readonly notify: boolean
  readonly checked: { readonly index: number; readonly hash: string }
}

/** Repeats of a transaction that was rolled back for its isolation. */
const RETRIES_MAX = 100
/** The advisory lock of migrations, so that two clients do not create the tables at the same time. */
const MIGRATION_LOCK = 4_861_203_877_101
/** For creating the tables, which may wait for other clients. */
const MIGRATION_LIMIT_MS = 10_000
/** For the orderly end of a connection. */
const END_LIMIT_MS = LIMIT_MAX_MS

/**
 * The calls of the schema's functions over one connection. Each is one statement and one transaction, without prepared
 * names, settings or locks that outlive it: it may go through a pooler in transaction mode.
 */
export class Database {
  readonly channel: string
  /** The connection is known to be the server's own and not a pooler's: statements may be prepared by name. */
  direct = false
  readonly #client: PgClient
  readonly #place: PostgresUrl
  readonly #schema: string
  readonly #limit: StatementLimit
  readonly #lost: (error: Error) => void
  /** The longest limit while the connection is being opened. */
  #openingMs: number
  #turn: Promise<void> = Promise.resolve()

  constructor(
    driver: PgDriver,
    place: PostgresUrl,
    options: { timeoutMs: number; ssl?: unknown; limit: StatementLimit; lost: (error: Error) => void },
  ) {
    this.#place = place
    this.#limit = options.limit
    this.#lost = options.lost
    this.#openingMs = options.timeoutMs
    this.#schema = schemaIdentifier(place.schema)
    this.channel = place.schema
    this.#client = new driver.Client(clientOptions(place.connectionString, options))
    this.#client.on('error', options.lost)
    this.#client.on('end', () => options.lost(new Error('the server has closed the connection')))
  }

  /** Connects, and creates or checks the tables. */
  async open(): Promise<void> {
    try {
      await this.#client.connect()
    } catch (error) {
      throw errorOfPg(error, `cannot connect to ${this.#place.name}`)
    }
    const version = await this.#version()
    if (version === undefined) await this.#migrate()
    else if (version !== SCHEMA_VERSION) {
      throw new InvalidError(
        `the schema ${this.#place.schema} has version ${version}, this client needs ${SCHEMA_VERSION}`,
        {
          code: 'mismatch',
          hint:
            version > SCHEMA_VERSION ? 'update this client' : 'run `leasehold engines sql postgres` of this version',
        },
      )
    }
  }

  /** Where the log stands, and the latest snapshot if there is one. */
  async load(): Promise<Loaded> {
    const S = this.#schema
    const rows = await this.#query(
      'cannot read the state',
      `SELECT h.service, h.first_epoch, h.first_level, h.first_floor, h.epoch, s.index, s.nonce, s.state,
         v.timeline, v.system, v.started, ${movedSql('h', 'v', 'h.tableoid')} AS moved, current_user AS role,
         CASE WHEN ${S}.floor() IS NULL THEN clock_timestamp()::text END AS clock,
         current_setting('synchronous_commit') = 'off' AS asynchronous
       FROM ${S}.head h CROSS JOIN ${S}.server() v
       LEFT JOIN (SELECT * FROM ${S}.snapshot ORDER BY index DESC LIMIT 1) s ON true`,
      [],
    )
    this.#openingMs = Number.POSITIVE_INFINITY
    const row = rows[0]
    if (row === undefined) throw new StorageError(`the schema ${this.#place.schema} has no head`)
    const { service, first_epoch, first_level, first_floor, epoch, index, nonce, state } = row
    return {
      service: String(service),
      first: { epoch: Number(first_epoch), level: Number(first_level), floor: Number(first_floor) as Serial },
      epoch: Number(epoch),
      moved: row.moved === true,
      doubts: doubtsOf(row),
      snapshot: index === null ? undefined : { index: Number(index), nonce: String(nonce), state: state as Uint8Array },
    }
  }

  async append(options: AppendOptions): Promise<readonly LogRow[]> {
    const { seen, epoch, elapsedMs, nonce, commands, tick, notify, checked } = options
    const values = [seen.index, seen.nonce, epoch, elapsedMs ?? null, nonce, commands, tick, notify ? this.channel : '']
    const text = `SELECT * FROM ${this.#schema}.append(${SCHEMA_VERSION},$1,$2,$3,$4,$5,$6,$7,$8,$9,$10)`
    return rowsOf(await this.#query('an append failed', text, [...values, checked.index, checked.hash]))
  }

  /** The entries after `seen`. `whole`: up to the end of the log. */
  async since(seen: Place): Promise<{ readonly rows: readonly LogRow[]; readonly whole: boolean }> {
    const text = `SELECT * FROM ${this.#schema}.since(${SCHEMA_VERSION},$1,$2)`
    const rows = rowsOf(await this.#query('cannot read the log', text, [seen.index, seen.nonce]))
    return { rows, whole: rows.length < PAGE_ENTRIES }
  }

  async compact(place: Place, state: Uint8Array): Promise<void> {
    const text = `SELECT ${this.#schema}.compact(${SCHEMA_VERSION},$1,$2,$3)`
    await this.#query('a snapshot failed', text, [place.index, place.nonce, Buffer.from(state)])
  }

  /** Notifies other clients of new entries. */
  async notify(payload: string): Promise<void> {
    await this.#query('a notification failed', 'SELECT pg_notify($1,$2)', [this.channel, payload])
  }

  async raiseEpoch(epoch: number, nonce: string): Promise<void> {
    const text = `SELECT * FROM ${this.#schema}.raise_epoch(${SCHEMA_VERSION},$1,$2,$3)`
    await this.#query('the epoch cannot be raised', text, [epoch, nonce, this.channel])
  }

  /** Closes the connection after the statement in flight, or cuts it when the server stays silent. */
  async end(): Promise<void> {
    await this.#limit.run(this.#client, this.#client.end(), END_LIMIT_MS)
  }

  cut(): void {
    cut(this.#client)
  }

  async #version(): Promise<number | undefined> {
    try {
      const text = `SELECT version FROM ${this.#schema}.head`
      const { rows } = await this.#limited(this.#client.query(text))
      return rows[0] === undefined ? undefined : Number(rows[0].version)
    } catch (error) {
      if (isMissing(error)) return undefined
      throw errorOfPg(error, 'cannot read the version of the schema')
    }
  }

  async #migrate(): Promise<void> {
    const { schema, migrate, name } = this.#place
    const sql = postgresSql({ schema })
    const hint = `let an administrator run this once (\`leasehold engines sql postgres\` prints it):\n${sql}`
    if (!migrate) throw new InvalidError(`${name} has no schema ${schema}, and the URL says migrate=never`, { hint })
    try {
      // One text without parameters is one transaction of the simple protocol.
      const text = `BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}); ${sql}; COMMIT;`
      await this.#limited(this.#client.query(text), MIGRATION_LIMIT_MS)
    } catch (error) {
      if (error instanceof StatementTimeout) throw errorOfPg(error, `cannot create the schema ${schema}`)
      await this.#limited(this.#client.query('ROLLBACK')).catch(() => {})
      if ((error as { code?: unknown }).code !== '42501') throw errorOfPg(error, `cannot create the schema ${schema}`)
      throw new AccessError(`${name} has no schema ${schema}, and this user may not create it`, {
        code: 'forbidden',
        cause: error,
        hint,
      })
    }
  }

  /** Runs one statement at a time; others wait. */
  #query(what: string, text: string, values: readonly unknown[]): Promise<readonly PgRow[]> {
    const rows = this.#turn.then(() => this.#send(what, text, values))
    this.#turn = rows.then(
      () => {},
      () => {},
    )
    return rows
  }

  async #send(what: string, text: string, values: readonly unknown[]): Promise<readonly PgRow[]> {
    const statement = this.direct ? { name: nameOf(what), text, values } : { text, values }
    for (let attempt = 1; ; attempt++) {
      try {
        return (await this.#limited(this.#client.query(statement), undefined, sizeOf(values))).rows
      } catch (error) {
        if (isRetryable(error) && attempt < RETRIES_MAX) continue
        throw new CallError(what, error)
      }
    }
  }

  /** Limits the time of a statement. A timeout is the loss of the connection. */
  async #limited<T>(statement: Promise<T>, limitMs?: number, bytes = 0): Promise<T> {
    try {
      return await this.#limit.run(this.#client, statement, limitMs ?? Math.min(this.#limit.ms, this.#openingMs), bytes)
    } catch (error) {
      if (error instanceof StatementTimeout) this.#lost(error)
      throw error
    }
  }
}

/** A call that failed, with the error of the driver. */
export class CallError extends Error {
  constructor(
    readonly what: string,
    cause: unknown,
  ) {
    super(what, { cause })
  }
}

export function clientOptions(
  connectionString: string,
  options: { timeoutMs: number; ssl?: unknown },
): Record<string, unknown> {
  return {
    connectionString,
    connectionTimeoutMillis: options.timeoutMs,
    keepAlive: true,
    application_name: 'leasehold',
    ...(options.ssl === undefined ? {} : { ssl: options.ssl }),
  }
}

/** Bytes of the binary parameters: commands and snapshots. */
function sizeOf(values: readonly unknown[]): number {
  return values.reduce<number>((sum, value) => sum + (value instanceof Uint8Array ? value.length : 0), 0)
}

/** The name of a prepared statement: one per kind of call. */
function nameOf(what: string): string {
  return `leasehold: ${what}`
}

function rowsOf(rows: readonly PgRow[]): LogRow[] {
  return rows.map(({ index, nonce, epoch, at, commands, level, floor }) => ({
    index: Number(index),
    nonce: String(nonce),
    epoch: Number(epoch),
    at: Number(at),
    commands: commands === null ? undefined : (commands as Uint8Array),
    level: level === null ? undefined : Number(level),
    floor: floor === null ? undefined : (Number(floor) as Serial),
  }))
}

function doubtsOf(row: PgRow): Doubts {
  const unreadable = Object.entries(SERVER_FUNCTIONS).filter(([column]) => row[column] === null)
  return {
    role: String(row.role),
    unreadable: unreadable.flatMap(([, functions]) => functions),
    clock: typeof row.clock === 'string' ? row.clock : undefined,
    asynchronous: row.asynchronous === true,
  }
}
