import type { ResourceRecord } from '../../world/index.js'
import type { HoldRecord } from '../hold-book.js'
import type { Finding } from './finding.js'

/** An effect of a hold came to a resource that cannot check, after the lock had passed on to another client. */
export function lateEffects(records: readonly ResourceRecord[], holds: readonly HoldRecord[]): Finding[] {
  return records.flatMap((record) => {
    if (record.action !== 'effect') return []
    const own = holds.find((hold) => hold.number === record.unit.hold)
    const later = holds.find(
      (hold) =>
        own !== undefined &&
        hold.number > own.number &&
        hold.lock === own.lock &&
        hold.client !== own.client &&
        hold.grantedUs < record.atUs,
    )
    if (later === undefined) return []
    return [
      {
        rule: 'late-effect' as const,
        text: `an effect of ${record.unit.client} came to ${record.resource} after ${later.client} had got ${later.lock}`,
        atUs: record.atUs,
        who: [record.unit.client, later.client, record.resource],
      },
    ]
  })
}
