import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command, Result, SessionId } from '@leasehold/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openNodeReplica } from '../../src/node/open-replica.js'
import type { Replica } from '../../src/replica.js'
import { acquire } from '../support/world.js'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'leasehold-open-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const SMALL = { segmentBytes: 512 * 1024, reserveBytes: 64 * 1024 }
const submit = (replica: Replica, command: Command) =>
  new Promise<Result>((resolve) => replica.submit(command, resolve))
const stop = (replica: Replica) => new Promise<void>((resolve) => replica.stop(resolve))
const open = (more: Partial<Parameters<typeof openNodeReplica>[0]> = {}) => openNodeReplica({ dir, ...SMALL, ...more })

async function openSession(replica: Replica): Promise<SessionId> {
  const command: Command = {
    kind: 'openSession',
    nonce: 'ab'.repeat(16),
    secret: '00'.repeat(16),
    ttlMs: 60_000 as never,
    client: 't',
    local: false,
  }
  const result = await submit(replica, command)
  if (result.kind !== 'opened') throw new Error(JSON.stringify(result))
  return result.session
}

describe('a member on this machine', () => {
  it('keeps its state over a restart, and releases the folder', async () => {
    const first = await open()
    const session = await openSession(first)
    expect(await submit(first, acquire(session, 1, 'a'))).toMatchObject({ kind: 'granted' })
    await expect(open()).rejects.toThrow(/is in use by n1/)
    await stop(first)
    const second = await open({ mustExist: true })
    expect(await submit(second, acquire(session, 2, 'a'))).toMatchObject({ kind: 'refused', code: 'busy' })
    expect(second.status).toMatchObject({ member: 'n1', cluster: first.status.cluster, role: 'leader' })
    await stop(second)
  })

  it('serves many commands at once, in order, over several log files and snapshots', async () => {
    const replica = await open({ snapshotBytes: 300_000 })
    const session = await openSession(replica)
    let request = 1
    const data = new Uint8Array(1000)
    for (let round = 0; round < 10; round++) {
      const lowest = request
      const batch = Array.from({ length: 100 }, (_, i) =>
        submit(replica, acquire(session, request++, `l-${round}-${i}`, { data, ack: { lowest, also: [] } })),
      )
      const results = await Promise.all(batch)
      const holds = results.map((result) => (result.kind === 'granted' ? result.grant.hold : 0))
      expect(holds).toEqual([...holds].sort((a, b) => a - b))
      expect(holds[0]).toBeGreaterThan(0)
    }
    const { index } = replica.stale()
    await stop(replica)
    const names = readdirSync(dir)
    expect(names.filter((name) => name.startsWith('snapshot-')).length).toBeGreaterThan(0)
    const again = await open()
    expect(again.stale().index).toBeGreaterThan(0)
    expect(await submit(again, acquire(session, request, 'l-9-99'))).toMatchObject({ code: 'busy' })
    expect(again.status.commitIndex).toBeGreaterThan(index)
    await stop(again)
  })

  it('does not bootstrap a service where one must exist', async () => {
    await expect(open({ mustExist: true })).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringContaining('is empty'),
    })
    const replica = await open({ epoch: 5 })
    expect(replica.status.epoch).toBe(5)
    await stop(replica)
  })

  it('refuses invalid options, and releases the folder', async () => {
    await expect(open({ name: 'no name' })).rejects.toMatchObject({ code: 'invalid' })
    await expect(open({ epoch: 0 })).rejects.toMatchObject({ code: 'invalid' })
    await stop(await open())
  })
})
