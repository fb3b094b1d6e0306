import type { ResourceRecord } from '../../world/index.js'
import type { Finding } from './finding.js'

/**
 * An acknowledged unit is lost when another write, computed from the value of before it, takes its place. Judged at the
 * resource: every accepted write must have read the version that it replaces.
 */
export function lostUpdates(records: readonly ResourceRecord[]): Finding[] {
  const findings: Finding[] = []
  const writers = new Map<string, ResourceRecord>()
  for (const record of records) {
    if (record.action !== 'write' || !record.accepted) continue
    const { resource, unit, version } = record
    const before = writers.get(resource)
    if (before !== undefined && (unit.readVersion ?? 0) < version - 1 && before.unit.hold !== unit.hold) {
      findings.push({
        rule: 'lost-update',
        text: `${unit.client} has overwritten the acknowledged update of ${before.unit.client}: it had read ${resource} before it`,
        atUs: record.atUs,
        who: [unit.client, before.unit.client, resource],
      })
    }
    writers.set(resource, record)
  }
  return findings
}
