import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command, Result, SessionId } from '@leasehold/core'
import { openNodeReplica } from '../../src/node/open-replica.js'
import type { Replica } from '../../src/replica.js'
import { acquire } from './world.js'

/** Folders of a test, removed at its end. */
export class Folders {
  readonly #made: string[] = []

  make(): string {
    const dir = mkdtempSync(join(tmpdir(), 'leasehold-offline-'))
    this.#made.push(dir)
    return dir
  }

  close(): void {
    for (const dir of this.#made) rmSync(dir, { recursive: true, force: true })
  }
}

export const submit = (replica: Replica, command: Command): Promise<Result> =>
  new Promise((resolve) => replica.submit(command, resolve))

export const stop = (replica: Replica): Promise<void> => new Promise((resolve) => replica.stop(resolve))

export const SMALL = { segmentBytes: 256 * 1024, spareSegments: 1, reserveBytes: 4096 }

/**
 * A member's folder with two sessions, a plain hold, a confirmed persistent hold, a waiter, a register, and (with
 * `snapshots`) so many entries that there are two snapshots and several log files.
 */
export async function usedFolder(dir: string, options: { epoch?: number; snapshots?: boolean } = {}): Promise<void> {
  const bounds = options.snapshots === true ? { snapshotBytes: 150_000 } : {}
  const member = await openNodeReplica({ dir, ...SMALL, ...bounds, epoch: options.epoch ?? 1 })
  const session = await opened(member, 'aa')
  const other = await opened(member, 'bb')
  await granted(member, acquire(session, 1, 'plain'))
  await granted(member, acquire(session, 2, 'kept', { persistent: true }))
  const put = { kind: 'put', key: 'config', value: new Uint8Array([1, 2, 3]) } as const
  // The acknowledgement of the grants is what makes the hold persistent.
  await submit(member, { ...put, session, request: 3, ack: { lowest: 3, also: [] } } as Command)
  void submit(member, acquire(other, 1, 'plain', { waitMs: 60_000 }))
  if (options.snapshots === true) {
    const data = new Uint8Array(4000)
    for (let request = 4; request < 204; request++) {
      await granted(member, acquire(session, request, `many/${request % 7}/${request}`, { data }))
    }
  }
  await stop(member)
}

async function opened(member: Replica, byte: string): Promise<SessionId> {
  const secret = '00'.repeat(16)
  const facts = { ttlMs: 3_600_000 as never, client: `client ${byte}`, local: false }
  const result = await submit(member, { kind: 'openSession', nonce: byte.repeat(16), secret, ...facts })
  if (result.kind !== 'opened') throw new Error(JSON.stringify(result))
  return result.session
}

async function granted(member: Replica, command: Command): Promise<void> {
  const result = await submit(member, command)
  if (result.kind !== 'granted') throw new Error(JSON.stringify(result))
}
