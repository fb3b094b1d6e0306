import type { HoldRecord } from '../hold-book.js'
import type { Finding } from './finding.js'

/** A grant that was asked for after another one of the lock was known has a greater token. */
export function tokenOrder(holds: readonly HoldRecord[]): Finding[] {
  return holds.flatMap((hold, i) => {
    const { token } = hold
    const earlier = holds.slice(0, i).find((other) => {
      if (token === undefined || other.token === undefined) return false
      return other.lock === hold.lock && other.grantedUs <= hold.askedUs && other.token >= token
    })
    if (earlier === undefined) return []
    return [
      {
        rule: 'token-order' as const,
        text: `${hold.client} was granted ${hold.lock} with token ${token}, after ${earlier.client} with token ${earlier.token}`,
        atUs: hold.grantedUs,
        who: [hold.client, earlier.client],
      },
    ]
  })
}
