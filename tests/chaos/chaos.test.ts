import { describe, expect, test } from 'vitest'
import { RECOVERY_LIMIT_MS, runChaos } from './run.js'

const SEED = 3
const DURATION_MS = 12_000
const LIMIT_MS = 400_000

describe('a short chaos run', () => {
  test(
    '3 real members under faults lose nothing that was acknowledged, and come back',
    async () => {
      const lines: string[] = []
      const say = (line: string): void => void lines.push(line)
      const result = await runChaos({
        seed: SEED,
        members: 3,
        durationMs: DURATION_MS,
        clients: 1,
        atLeast: { operations: 60, faults: 3 },
        say,
      })
      expect(result.problems, lines.join('\n')).toEqual([])
      expect(result.faults).toBeGreaterThan(2)
      expect(result.operations).toBeGreaterThan(20)
      expect(Math.max(...result.recoveriesMs)).toBeLessThanOrEqual(RECOVERY_LIMIT_MS)
    },
    LIMIT_MS,
  )
})
