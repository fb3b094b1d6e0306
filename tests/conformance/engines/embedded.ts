import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ALL_CAPABILITIES } from '@leasehold/client'
import { createLocks } from 'leasehold'
import type { Fixture } from '../fixture.js'

export const memory: Fixture = {
  name: '`memory:`',
  capabilities: ALL_CAPABILITIES,
  shortestTtlMs: 500,
  expirySlackMs: 500,
  start: async () => {
    const url = `memory:conformance-${process.pid}`
    const anchor = createLocks(url)
    await anchor.connect()
    return { client: (options) => createLocks(url, options), stop: () => anchor.close() }
  },
}

export const file: Fixture = {
  name: '`file:`',
  capabilities: ALL_CAPABILITIES,
  shortestTtlMs: 500,
  expirySlackMs: 500,
  start: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-conformance-'))
    const url = `file:${folder}`
    const anchor = createLocks(url)
    await anchor.connect()
    return {
      client: (options) => createLocks(url, options),
      stop: async () => {
        await anchor.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
}
