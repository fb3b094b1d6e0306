import { describe, expect, it } from 'vitest'
import { openScenario, resultOf, runScenario, scenarioOf, SCENARIOS } from '../../src/scenarios/index.js'
import { expectWellFormedPage } from '../support/page-check.js'

const SEEDS = [1, 2]
/** Clusters cost most of the time; the explorer draws them with seeds of their own. */
const SEEDS_OF_CLUSTERS = [1]

describe('every scenario ends as its definition expects, and has a well-formed page', () => {
  for (const scenario of SCENARIOS) {
    it(`${scenario.id} ${scenario.title}`, async () => {
      for (const seed of scenario.system.kind === 'cluster' ? SEEDS_OF_CLUSTERS : SEEDS) {
        const result = await runScenario(scenario, { seed })
        expect(result.differences, `seed ${seed}`).toEqual([])
        expectWellFormedPage(result)
      }
    })
  }
})

describe('without floors, services that follow each other', () => {
  it.each([
    ['F1o', [/^I15: lock L: token \d+ was granted twice, to hold 2 \(exclusive, incarnation 1\) and to hold 2 /]],
    ['F2o', [/^I15: lock kept: token \d+ was granted twice/, /^I15: lock L: token \d+ was granted twice/]],
    ['P21e', [/^I2: lock L: token \d+ was granted to hold 2 .* after token/, /^I2: lock L: token/]],
  ])('break the order of tokens in %s, and no other invariant', async (id, texts) => {
    const scenario = scenarioOf(id)
    if (scenario === undefined) throw new Error(`no ${id}`)
    const { violations } = await runScenario(scenario)
    const invariants = violations.filter(({ rule }) => rule === 'invariant').map(({ text }) => text)
    expect(invariants).toEqual(texts.map((text) => expect.stringMatching(text)))
  })
})

describe('the catalog', () => {
  it('has every id once, in any case', () => {
    const ids = SCENARIOS.map(({ id }) => id.toLowerCase())
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('is data: nothing is lost in JSON', () => {
    for (const scenario of SCENARIOS) expect(JSON.parse(JSON.stringify(scenario))).toEqual(scenario)
  })

  it('gives the same trace for the same seed', async () => {
    const [first] = SCENARIOS
    const run = async (seed: number) => (await runScenario(first as (typeof SCENARIOS)[number], { seed })).traceHash
    expect(await run(5)).toBe(await run(5))
    expect(await run(6)).not.toBe(await run(5))
  })

  it.each(['S13d', 'S15', 'P18'])('has the same trace for %s when the holds are not inspected', async (id) => {
    const scenario = scenarioOf(id)
    if (scenario === undefined) throw new Error(`no ${id}`)
    const play = await openScenario(scenario, { seed: 1 })
    play.world.timeline.enabled = false
    await play.world.run(play.startUs + scenario.until * 1_000_000)
    const seen = await runScenario(scenario, { seed: 1 })
    expect(seen.timeline.some(({ kind }) => kind === 'lease-begin')).toBe(true)
    expect(seen.traceHash).toBe(resultOf(play).traceHash)
  })
})
