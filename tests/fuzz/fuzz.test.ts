import { expect, test } from 'vitest'
import { fuzz } from './fuzz.js'
import { TARGETS } from './targets.js'

/* A short share of `npm run fuzz`, and the proof that it can find something. */

test.each(TARGETS)('$name: what strangers send is read or refused', (target) => {
  const { problem, refused, inputs } = fuzz(target, 4_000, 1)
  expect(problem).toBeUndefined()
  // Both sides are met: otherwise the inputs are too wild, or too tame.
  if (target.name !== 'stream of members') expect(refused).toBeGreaterThan(0)
  expect(refused).toBeLessThan(inputs)
})

test('an error that is not ours is a problem', () => {
  const target = {
    name: 'broken',
    once: (random: { between(least: number, most: number): number }) => {
      if (random.between(0, 99) === 7) throw new RangeError('out of bounds')
    },
  }
  expect(fuzz(target, 4_000, 1).problem).toContain('out of bounds')
})
