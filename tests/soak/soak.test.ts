import { expect, test } from 'vitest'
import { soak } from './run.js'

test('many clients, connections cut at random: nothing is left over', { timeout: 300_000 }, async () => {
  const { problems, tally, cuts } = await soak({
    clients: 100,
    acquires: 20,
    seed: 7,
    kind: 'stream',
    cutEveryMs: 100,
    cutShare: 0.05,
  })
  expect(problems).toEqual([])
  expect(tally.granted).toBeGreaterThan(1_500)
  expect(cuts).toBeGreaterThan(0)
})
