import { describe } from 'vitest'
import { findChromium } from './chromium.js'
import { findEtcd } from './etcd.js'
import { findMariadb } from './mariadb.js'
import { findPostgres } from './postgres.js'
import { findRedis } from './redis.js'

const FINDERS = {
  PostgreSQL: findPostgres,
  Redis: findRedis,
  MariaDB: findMariadb,
  etcd: findEtcd,
  Chromium: findChromium,
} as const

export type ServiceName = keyof typeof FINDERS

/**
 * A suite that needs a real service. Where that service is not installed the suite is skipped,
 * and its name says what was missing.
 * @example
 * describeWith('PostgreSQL', 'the guard table', () => { … })
 */
export function describeWith(service: ServiceName, title: string, body: () => void): void {
  const missing = FINDERS[service]() === undefined
  describe.skipIf(missing)(missing ? `${title} [skipped: ${service} is not installed]` : title, body)
}
