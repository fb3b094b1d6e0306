import type { Finding } from './finding.js'

/** A grant of an exclusive lock, as its service has decided it. */
export interface GrantedOnce {
  readonly lock: string
  readonly client: string
  readonly token: bigint
  readonly atUs: number
}

/**
 * Each grant of a lock has a greater token than every one before it, in the order in which the service has granted. Sharper
 * than what clients can see: it also holds for clients that were in the queue at the same time.
 */
export function grantOrder(grants: readonly GrantedOnce[]): Finding[] {
  const highest = new Map<string, GrantedOnce>()
  const found: Finding[] = []
  for (const grant of grants) {
    const before = highest.get(grant.lock)
    if (before === undefined || grant.token > before.token) highest.set(grant.lock, grant)
    else {
      found.push({
        rule: 'token-order',
        text: `${grant.client} was granted ${grant.lock} with token ${grant.token}, after ${before.client} with token ${before.token}`,
        atUs: grant.atUs,
        who: [grant.client, before.client],
      })
    }
  }
  return found
}
