import { AccessError, InvalidError, LeaseholdError, LimitError, StorageError, UnavailableError } from '@leasehold/core'
import { RAISED } from './sql/schema.js'

/** A connection of the driver `pg`: the part that is used here. */
export interface PgClient {
  connect(): Promise<unknown>
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly PgRow[] }>
  query(statement: {
    readonly name?: string
    readonly text: string
    readonly values: readonly unknown[]
  }): Promise<{ readonly rows: readonly PgRow[] }>
  end(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'notification', listener: (message: { channel: string; payload?: string }) => void): unknown
  /** The socket, to cut a connection that does not answer. */
  readonly connection?: { readonly stream?: { destroy(): void; readonly bytesRead?: number } }
}

export type PgRow = Readonly<Record<string, unknown>>

/** The driver itself: `import pg from 'pg'`. */
export interface PgDriver {
  readonly Client: new (options: Readonly<Record<string, unknown>>) => PgClient
}

/** Loads the driver that the application has installed. */
export async function loadPg(): Promise<PgDriver> {
  // Not a literal, so that neither a bundler nor the compiler requires the optional module.
  const name = 'pg'
  try {
    const module = (await import(name)) as { default?: PgDriver } & PgDriver
    return module.default ?? module
  } catch (cause) {
    throw new InvalidError("postgres://… needs the driver 'pg', which is not installed", {
      cause,
      hint: 'npm install pg',
    })
  }
}

/** Cuts a connection without waiting for the server. */
export function cut(client: PgClient): void {
  // `end` alone would wait for the answer to a query in flight.
  client.end().catch(() => {})
  client.connection?.stream?.destroy()
}

/** Whether the same statement may succeed again: the database rolled it back for its isolation level or a deadlock. */
export function isRetryable(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === '40001' || code === '40P01'
}

/** Whether a function of the schema raised this error. */
export function isRaised(error: unknown, kind: keyof typeof RAISED): boolean {
  return (error as { code?: unknown } | undefined)?.code === RAISED[kind]
}

/** Whether the table, function or schema does not exist. */
export function isMissing(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === '42P01' || code === '3F000' || code === '42883'
}

/** The typed error for an error of the driver or the server. */
export function errorOfPg(error: unknown, what: string): LeaseholdError {
  if (error instanceof LeaseholdError) return error
  const { code, message } = error as { code?: unknown; message?: unknown }
  const text = `PostgreSQL: ${what}: ${typeof message === 'string' ? message : String(error)}`
  const state = typeof code === 'string' ? code : ''
  if (state === '28P01' || state === '28000') return new AccessError(text, { code: 'unauthenticated', cause: error })
  if (state === '42501') {
    const hint = "grant the client's role USAGE on the schema, its tables and functions"
    return new AccessError(text, { code: 'forbidden', cause: error, hint })
  }
  if (state === RAISED.version) {
    return new InvalidError(text, { code: 'mismatch', cause: error, hint: 'update this client' })
  }
  if (state === RAISED.clock) {
    const hint =
      "set the server's clock, or found the service with `leasehold engines sql postgres --epoch N`, N never used before"
    return new InvalidError(text, { cause: error, hint })
  }
  if (state === '3D000') return new InvalidError(text, { cause: error, hint: 'create the database' })
  if (state === '53300') return new LimitError(text, { cause: error, hint: 'raise max_connections, or use a pooler' })
  if (state === RAISED.differs) {
    const hint = 'all clients of one schema run versions that decide alike: update the older ones'
    return new StorageError(text, { cause: error, hint })
  }
  if (state.startsWith('25') || /^(53|58|XX)/.test(state)) return new StorageError(text, { cause: error })
  return new UnavailableError(text, { cause: error, hint: 'says nothing about the holder of a lock' })
}
