import { InvalidError } from '@leasehold/core'

/** What a prune needs of a client: every `Locks` fits. */
export interface PruneLocks {
  acquire(name: string, options?: { ttl?: string }): Promise<{ readonly token: bigint; release(): Promise<unknown> }>
  query(options: { limit?: number; cursor?: string }): Promise<{
    readonly held: readonly { readonly locks: readonly { readonly token: bigint }[] }[]
    readonly next?: string | undefined
  }>
}

/** Pages of a query; more holds than this many thousands are refused rather than half counted. */
const PAGES_MAX = 10_000

/**
 * The oldest token that anybody may still use: of all holds, or, if nothing is held, of a hold taken just now. Whoever is
 * granted later has a greater one. The client must see every lock of the service (no namespace).
 */
export async function oldestLiveToken(locks: PruneLocks): Promise<bigint> {
  const probe = await locks.acquire(`leasehold/prune-${Math.floor(Date.now() / 1000)}`, { ttl: '30s' })
  try {
    let oldest = probe.token
    let cursor: string | undefined
    for (let page = 0; page < PAGES_MAX; page++) {
      const { held, next } = await locks.query(cursor === undefined ? { limit: 1000 } : { limit: 1000, cursor })
      for (const hold of held) for (const { token } of hold.locks) if (token < oldest) oldest = token
      if (next === undefined) return oldest
      cursor = next
    }
  } finally {
    await probe.release()
  }
  throw new InvalidError(`more than ${PAGES_MAX} pages of holds`)
}
