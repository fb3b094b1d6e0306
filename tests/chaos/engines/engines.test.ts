import { expect, test } from 'vitest'
import { describeWith } from '../../services/suite.js'
import { runEngineChaos } from '../engine-run.js'
import { etcdWorld } from './etcd.js'
import { postgresWorld } from './postgres.js'

const DURATION_MS = 10_000
const LIMIT_MS = 400_000

for (const { service, start, seed } of [
  { service: 'etcd', start: etcdWorld, seed: 7 },
  { service: 'PostgreSQL', start: postgresWorld, seed: 5 },
] as const) {
  describeWith(service, `a short chaos run on ${service}`, () => {
    test(
      'nothing stale is accepted, nothing acknowledged lost, and no lock has two holders in the log',
      async () => {
        const lines: string[] = []
        const say = (line: string): void => void lines.push(line)
        const result = await runEngineChaos({
          seed,
          durationMs: DURATION_MS,
          clients: 1,
          atLeast: { operations: 120, faults: 2 },
          start,
          say,
        })
        expect(result.problems, lines.join('\n')).toEqual([])
        expect(result.faults).toBeGreaterThan(1)
        expect(result.operations).toBeGreaterThan(50)
      },
      LIMIT_MS,
    )
  })
}
