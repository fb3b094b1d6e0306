import { fileURLToPath } from 'node:url'
import { ABILITIES } from '@leasehold/client'
import { file, memory } from './engines/embedded.js'
import { etcd, etcdCluster } from './engines/etcd.js'
import { lab } from './engines/lab.js'
import { postgres } from './engines/postgres.js'
import { cluster, server } from './engines/service.js'
import type { Fixture } from './fixture.js'

export const PAGE = fileURLToPath(new URL('../../docs/engines.md', import.meta.url))
/** Every engine that the suite runs on, in the order of the table. */
export const FIXTURES: readonly Fixture[] = [memory, file, server, cluster, etcd, etcdCluster, postgres, lab]

const BEGIN = '<!-- Generated from the fixtures of tests/conformance by its table.ts: do not edit. -->\n'
const END = '<!-- End of the generated table. -->'

/** One row per ability, one column per engine; what a fixture declares, and what the suite holds it to. */
export function abilityTable(fixtures: readonly Fixture[] = FIXTURES): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`
  const seconds = (ms: number) => `${ms / 1_000} s`
  return [
    row(['', ...fixtures.map(({ name }) => name)]),
    row(['---', ...fixtures.map(() => '---')]),
    ...Object.entries(ABILITIES).map(([ability, has]) =>
      row([ability, ...fixtures.map(({ capabilities }) => (has(capabilities) ? 'yes' : '**no**'))]),
    ),
    row(['shortest TTL in the suite', ...fixtures.map(({ shortestTtlMs }) => seconds(shortestTtlMs))]),
    row(['a dead session ends at most so much later', ...fixtures.map(({ expirySlackMs }) => seconds(expirySlackMs))]),
    row(['faults of the line are played', ...fixtures.map(({ line }) => (line === true ? 'yes' : 'there is none'))]),
  ].join('')
}

/** The page with the table as the fixtures have it now. */
export function pageWith(page: string, table: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`${PAGE} has no place for the table`)
  return page.slice(0, begin + BEGIN.length) + table + page.slice(end)
}
