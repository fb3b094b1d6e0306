import type { HoldBook } from '../hold-book.js'
import type { Finding } from './finding.js'

/** Two clients had valid holds of one lock at once, by the algorithm's own rule. */
export function overlaps(book: HoldBook): Finding[] {
  return book.overlaps.map(({ atUs, lock, holds: [first, second] }) => ({
    rule: 'overlap' as const,
    text: `${second.client} got ${lock} while ${first.client} still had a valid hold of it`,
    atUs,
    who: [first.client, second.client],
  }))
}
