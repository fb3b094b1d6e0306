import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { MUTANTS } from './mutants.js'
import { MODELS, mutantsOf, simulate } from './quint.js'
import { exhaust, hasSpin } from './spin.js'

describe('the specification', () => {
  test('stays short enough to be read', () => {
    const lines = MODELS.map(
      ({ file }) => readFileSync(new URL(`${file}.qnt`, import.meta.url), 'utf8').split('\n').length,
    )
    expect(lines.reduce((a, b) => a + b)).toBeLessThanOrEqual(400)
  })

  test('has a mutant for each invariant', () => {
    const invariants = MODELS.flatMap((model) => model.invariants)
    expect(new Set(MUTANTS.map(({ breaks }) => breaks))).toEqual(new Set(invariants))
  })

  describe.each(MODELS)('$file.qnt', (model) => {
    test('keeps its promises in simulated runs, which reach what they are about', async () => {
      const { broken, witnessed, output } = await simulate(model)
      expect(broken, output).toEqual([])
      for (const witness of model.witnesses) expect([witness, witnessed.get(witness)]).not.toEqual([witness, 0])
    })

    test.each(mutantsOf(model.file))('loses $breaks when $why', async (mutant) => {
      const { broken } = await simulate(model, { mutant, samples: 3_000 })
      expect(broken).toEqual([mutant.breaks])
    })
  })
})

describe.skipIf(!hasSpin())('the exhausted models (needs Spin and a C compiler)', () => {
  test('fencing loses no acknowledged unit of four holders with two units each', () => {
    const { errors, states, complete, output } = exhaust('fencing', ['HOLDS=4', 'UNITS=2'])
    expect([errors, complete], output).toEqual([0, true])
    expect(states).toBeGreaterThan(2_000_000)
  })

  test('a hold that moves three times loses no acknowledged unit', () => {
    const { errors, states, complete, output } = exhaust('handover', ['MOVES=4'])
    expect([errors, complete], output).toEqual([0, true])
    expect(states).toBeGreaterThan(300_000)
  })

  test.each([
    ['fencing', 'NO_OPEN', 'a unit reads before it has raised the mark'],
    ['fencing', 'NO_CHECK', 'the resource does not compare tokens'],
    ['handover', 'SAME_TOKEN', 'a moved hold keeps its token'],
  ] as const)('%s with %s loses an acknowledged unit: %s', (model, mutant, _why) => {
    expect(exhaust(model, [mutant]).errors).toBe(1)
  })
})
