import { describe, expect, test } from 'vitest'
import { type TimedAction, actionsText, parseActions } from '../../packages/lab/page/src/view-model/actions.js'
import { sceneOf } from '../../packages/lab/page/src/view-model/scenes.js'
import { Simulation } from '../../packages/lab/page/src/view-model/simulation.js'

const scene = sceneOf('free') as never

describe('actions in an address', () => {
  test('come back as they were', () => {
    const actions: TimedAction[] = [
      { atUs: 1_500_000, action: { do: 'stepClock', who: 'N1', clock: 'monotonic', by: -15 } },
      { atUs: 2_000_000, action: { do: 'cut', who: 'N1', to: 'N2' } },
      { atUs: 2_000_000, action: { do: 'loseRenewals', who: 'C1', on: true } },
    ]
    expect(parseActions(actionsText(actions))).toEqual(actions)
  })

  test.each([
    'not JSON',
    '{}',
    '[[1,null]]',
    '[["soon",{"do":"kill","who":"N1"}]]',
    '[[1,{"do":"constructor","who":"N1"}]]',
    '[[1,{"do":"kill"}]]',
    '[[1,{"do":"cut","who":"N1"}]]',
    '[[1,{"do":"stepClock","who":"N1","clock":"wall"}]]',
    '[[1,{"do":"stepClock","who":"N1","clock":"sun","by":1}]]',
    '[[1,{"do":"drift","who":"N1","ppm":1e9}]]',
    '[[1,{"do":"holdWrite","who":"C1","for":-1}]]',
  ])('%s is none', (text) => {
    expect(parseActions(text)).toBeUndefined()
  })

  test('that name what does not exist do nothing, and say so', async () => {
    const simulation = await Simulation.open({
      scene,
      seed: 1,
      actions: [{ atUs: 3_000_000, action: { do: 'kill', who: 'N9' } }],
    })
    await simulation.advance(4_000_000)
    expect(simulation.journal.entries.map(({ text }) => text)).toContain('there is no machine N9')
  })

  test('the same actions have the same trace, however the frames fall', async () => {
    const actions: TimedAction[] = [
      { atUs: 4_000_000, action: { do: 'pauseInWrite', who: 'C1' } },
      { atUs: 9_000_001, action: { do: 'kill', who: 'N1' } },
    ]
    const hashes = []
    for (const stepUs of [20_000_000, 16_667, 1_000_003]) {
      const simulation = await Simulation.open({ scene, seed: 6, actions })
      while (simulation.nowUs < 20_000_000) {
        await simulation.advance(Math.min(20_000_000, simulation.nowUs + stepUs))
        simulation.viewModel()
      }
      hashes.push(simulation.traceHash)
    }
    expect(new Set(hashes).size).toBe(1)
  })
})

describe('what happens', () => {
  test('a violation stands at its own time, however late the view is built', async () => {
    const simulation = await Simulation.open({ scene: sceneOf('R1') as never, seed: 1 })
    await simulation.advance(60_000_000)
    simulation.viewModel()
    const { entries } = simulation.journal
    expect(entries.find(({ text }) => text.startsWith('overlap:'))?.at).toBeCloseTo(2.13, 2)
    expect(entries.find(({ text }) => text.startsWith('lost-update:'))?.at).toBeCloseTo(5.145, 2)
    expect(entries.map(({ at }) => at)).toEqual(entries.map(({ at }) => at).sort((a, b) => a - b))
  })
})
