import { expect, test } from 'vitest'
import { describeWith } from '../../services/suite.js'
import { runEngineChaos } from '../engine-run.js'
import { postgresWorld } from './postgres.js'

const SEED = 5
const DURATION_MS = 10_000
const LIMIT_MS = 400_000

describeWith('PostgreSQL', 'a short chaos run on PostgreSQL', () => {
  test(
    'nothing stale is accepted, nothing acknowledged lost, and no lock has two holders in the log',
    async () => {
      const lines: string[] = []
      const say = (line: string): void => void lines.push(line)
      const result = await runEngineChaos({
        seed: SEED,
        durationMs: DURATION_MS,
        clients: 1,
        atLeast: { operations: 120, faults: 2 },
        start: postgresWorld,
        say,
      })
      expect(result.problems, lines.join('\n')).toEqual([])
      expect(result.faults).toBeGreaterThan(1)
      expect(result.operations).toBeGreaterThan(50)
    },
    LIMIT_MS,
  )
})
