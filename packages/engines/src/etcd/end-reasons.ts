import { createHash } from 'node:crypto'
import { InvalidError } from '@leasehold/core'
import { bytesOf, type HoldRecord, type EndReasonRecord } from './layout.js'
import type { Op } from './api/messages.js'
import type { Store } from './store.js'

/** How long the end reason of a hold without a session is kept. */
const WORD_TTL_MS = 60_000

/** The operation that records why a hold ends, for its owner and for watches. */
export async function endReasonOp(
  store: Store,
  found: { readonly record: HoldRecord; readonly lease: bigint },
  word: EndReasonRecord,
  timeoutMs: number,
): Promise<Op> {
  const lease = found.lease === 0n ? await store.client.leaseGrant(WORD_TTL_MS, timeoutMs) : found.lease
  return { put: { key: store.layout.endReason(found.record.sid), value: bytesOf(word), lease } }
}

/** The hash of a secret. The secret itself is never stored: every client of etcd could read it. */
export function secretHash(secret: string): string {
  if (!/^[0-9a-f]{32}$/.test(secret)) throw new InvalidError('a secret has 32 hex digits')
  return createHash('sha256').update(secret).digest('hex')
}
