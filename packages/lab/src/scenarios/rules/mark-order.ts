import type { ResourceRecord } from '../../world/index.js'
import type { Finding } from './finding.js'

/** Tokens that a guarded resource accepts never fall. Judged from outside, whatever the resource has stored. */
export function markOrder(records: readonly ResourceRecord[]): Finding[] {
  const findings: Finding[] = []
  const highest = new Map<string, ResourceRecord>()
  for (const record of records) {
    const { resource, token, unit } = record
    if (!record.compared || !record.accepted || token === undefined) continue
    const top = highest.get(resource)
    if (top?.token !== undefined && token < top.token) {
      findings.push({
        rule: 'mark-order',
        text: `${resource} has accepted token ${token} of ${unit.client} after ${top.token} of ${top.unit.client}`,
        atUs: record.atUs,
        who: [unit.client, top.unit.client, resource],
      })
    } else highest.set(resource, record)
  }
  return findings
}
