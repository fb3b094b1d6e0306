import { createHash } from 'node:crypto'
import { InvalidError } from '@leasehold/core'
import { bytesOf, type HoldRecord, type EndReasonRecord } from './layout.js'
import type { Op } from './api/messages.js'
import type { Store } from './store.js'

/** How long the word about the end of a hold that has no session stays. */
const WORD_TTL_MS = 60_000

/** The operation that tells the owner of a hold, and all who watch, why it ends. */
export async function endReasonOp(
  store: Store,
  found: { readonly record: HoldRecord; readonly lease: bigint },
  word: EndReasonRecord,
  timeoutMs: number,
): Promise<Op> {
  const lease = found.lease === 0n ? await store.client.leaseGrant(WORD_TTL_MS, timeoutMs) : found.lease
  return { put: { key: store.layout.endReason(found.record.sid), value: bytesOf(word), lease } }
}

/** What lies in etcd can be read by all who may read etcd: never a secret itself. */
export function secretHash(secret: string): string {
  if (!/^[0-9a-f]{32}$/.test(secret)) throw new InvalidError('a secret has 32 hex digits')
  return createHash('sha256').update(secret).digest('hex')
}
