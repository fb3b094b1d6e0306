import { ALL_CAPABILITIES } from '@leasehold/client'
import { createLocks } from 'leasehold'
import { startPostgres } from '../../services/postgres.js'
import { Proxy } from '../../services/proxy.js'
import type { Fixture } from '../fixture.js'

/** Every client has a member and two connections of its own; behind the line both go through one door. */
export const postgres: Fixture = {
  name: '`postgres://`',
  needs: 'PostgreSQL',
  capabilities: ALL_CAPABILITIES,
  shortestTtlMs: 1_000,
  expirySlackMs: 1_500,
  line: true,
  start: async () => {
    const database = await startPostgres()
    const proxy = await Proxy.start(database.port)
    return {
      client: (options) => createLocks(database.url, options),
      line: {
        client: (options) => createLocks(database.url.replace(`:${database.port}`, `:${proxy.port}`), options),
        mute: () => proxy.mute(),
        shut: () => proxy.shut(),
        open: () => proxy.open(),
      },
      stop: async () => {
        await proxy[Symbol.asyncDispose]()
        await database.stop()
      },
    }
  },
}
