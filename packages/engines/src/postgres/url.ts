import { InvalidError } from '@leasehold/core'
import { SCHEMA_DEFAULT, schemaIdentifier } from './sql/schema.js'

/** A parsed `postgres://` URL. */
export interface PostgresUrl {
  /** For the driver: the URL without Leasehold's own parameters. */
  readonly connectionString: string
  /** For messages: without the password. */
  readonly name: string
  readonly schema: string
  /** Create the tables when they are missing. */
  readonly migrate: boolean
  /** Notifications by LISTEN. Off: only polls. */
  readonly listen: boolean
  /** A direct connection for LISTEN when `connectionString` goes through a pooler in transaction mode. */
  readonly listenString: string
}

const HINT = "'postgres://user:password@host:5432/database?schema=leasehold'"
const OWN = ['schema', 'migrate', 'listen'] as const

/**
 * Reads `postgres://…`. Beside what the driver knows (`sslmode`, …): `schema` (default `leasehold`), `migrate=never`, and
 * `listen=off` or `listen=postgres://…` (percent-encoded: the direct URL of a database that is otherwise used through a pooler).
 */
export function parsePostgresUrl(text: string): PostgresUrl {
  let url: URL
  try {
    url = new URL(text)
  } catch (cause) {
    throw new InvalidError('not the URL of a PostgreSQL database', { cause, hint: HINT })
  }
  if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:') {
    throw new InvalidError(`not the URL of a PostgreSQL database: ${url.protocol}`, { hint: HINT })
  }
  const [schema, migrate, listen] = OWN.map((name) => url.searchParams.get(name))
  for (const name of OWN) url.searchParams.delete(name)
  if (migrate !== null && migrate !== 'auto' && migrate !== 'never') {
    throw new InvalidError(`migrate is 'auto' or 'never', not ${JSON.stringify(migrate)}`, { hint: HINT })
  }
  if (listen && listen !== 'on' && listen !== 'off' && !/^postgres(ql)?:\/\//.test(listen)) {
    throw new InvalidError(`listen is 'on', 'off' or a postgres:// URL`, { hint: HINT })
  }
  schemaIdentifier(schema ?? SCHEMA_DEFAULT)
  const shown = new URL(url)
  shown.password = ''
  shown.search = ''
  const connectionString = url.toString()
  return {
    connectionString,
    name: shown.toString(),
    schema: schema ?? SCHEMA_DEFAULT,
    migrate: migrate !== 'never',
    listen: listen !== 'off',
    listenString: listen && listen !== 'on' && listen !== 'off' ? listen : connectionString,
  }
}
