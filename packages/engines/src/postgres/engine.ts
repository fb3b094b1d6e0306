import { defaultPlatform, type Engine, ProtocolEngine } from '@leasehold/client'
import { PostgresConnector } from './connector.js'
import { loadPg, type PgDriver } from './driver.js'
import { parsePostgresUrl } from './url.js'

export interface PostgresEngineOptions {
  /** `import pg from 'pg'`. Default: the one that is installed. */
  readonly driver?: PgDriver
  /** TLS, as `pg` takes it in `ssl`. */
  readonly ssl?: unknown
}

/** For connecting, creating the tables, and reading the last snapshot. */
const ATTEMPT_TIMEOUT_MS = 10_000
/** For a connection alone: shorter, so that a network that drops packets does not cost a lease. */
const CONNECT_TIMEOUT_MS = 2_500

/**
 * An engine whose lock state is a log in a PostgreSQL database: `postgres://user@host/database?schema=leasehold`. Two
 * connections per client, however many locks: one for calls, one that listens.
 *
 * @throws InvalidError for an invalid URL, or when the driver is missing
 */
export async function postgresEngine(url: string, options: PostgresEngineOptions = {}): Promise<Engine> {
  const place = parsePostgresUrl(url)
  const driver = options.driver ?? (await loadPg())
  const connector = new PostgresConnector({
    platform: defaultPlatform,
    driver,
    place,
    timeoutMs: CONNECT_TIMEOUT_MS,
    ...(options.ssl === undefined ? {} : { ssl: options.ssl }),
  })
  return new ProtocolEngine({ name: place.name, urls: [place.name], connector, attemptTimeoutMs: ATTEMPT_TIMEOUT_MS })
}
