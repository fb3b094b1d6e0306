import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { checkScenario, parseScenario, runScenario, SCENARIOS } from '../../src/scenarios/index.js'

const good = {
  id: 'my-1',
  title: 'A pause in front of the write',
  reference: 'invented',
  system: { kind: 'leasehold' },
  resources: { R: { kind: 'G*' } },
  clients: {
    C1: [{ do: 'acquire' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
    C2: [{ do: 'wait', until: 11 }, { do: 'acquire' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
  },
  faults: [{ at: 'C1 in write', do: 'pause', for: 15 }],
  until: 30,
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { R: 1 } },
}

describe('a scenario from outside', () => {
  it('is read from JSON and played', async () => {
    const result = await runScenario(parseScenario(JSON.stringify(good)), { seed: 3 })
    expect(result.differences).toEqual([])
  })

  it('may be any of ours', () => {
    for (const scenario of SCENARIOS) expect(() => checkScenario(JSON.parse(JSON.stringify(scenario)))).not.toThrow()
  })

  it.each([
    ['{', /one JSON object/],
    [[], /the scenario is an object/],
    [{ ...good, id: '../x' }, /^id /],
    [{ ...good, titel: 'x' }, /titel is unknown/],
    [{ ...good, system: { kind: 'chubby' } }, /system.kind is one of leasehold, redlock/],
    [{ ...good, resources: { R: { kind: 'H' } } }, /resources.R.kind/],
    [{ ...good, clients: {} }, /clients has/],
    [{ ...good, clients: { C1: [{ do: 'steal' }] } }, /clients.C1\[0\].do is one of/],
    [{ ...good, clients: { C1: [{ do: 'work' }] } }, /clients.C1\[0\].for/],
    [{ ...good, faults: [{ at: 1, do: 'pause' }] }, /faults\[0\].for/],
    [{ ...good, faults: [{ do: 'kill' }] }, /faults\[0\].at/],
    [{ ...good, until: -1 }, /^until/],
    [{ ...good, expect: {} }, /expect.violations/],
  ])('is refused with the place that is wrong: %#', (value, message) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    expect(() => parseScenario(text)).toThrow(message)
  })

  it('that names what does not exist fails, and does not just do nothing', async () => {
    const play = (fault: object) => runScenario(parseScenario(JSON.stringify({ ...good, faults: [fault] })))
    await expect(play({ at: 'C9 in write', do: 'pause', for: 1 })).rejects.toThrow(/no point of a client/)
    await expect(play({ at: 1, who: 'N9', do: 'kill' })).rejects.toThrow(/no machine N9/)
    await expect(play({ at: 1, do: 'system', action: 'failover' })).rejects.toThrow(/no action failover/)
    await expect(play({ at: 1, do: 'cut', from: 'C1', to: ['N1', 'N8'] })).rejects.toThrow(/fault cut at 1: .*N8/)
    const never = await play({ at: 'C1 in effect', do: 'pause', for: 1 })
    expect(never.differences).toContain('no client has come to the point: C1 in effect')
  })
})

it('the example of docs/lab.md is played as printed', async () => {
  const page = readFileSync(new URL('../../../../docs/lab.md', import.meta.url), 'utf8')
  const [, example] = /```json\n([\s\S]*?)```/.exec(page) ?? []
  expect((await runScenario(parseScenario(example ?? ''))).differences).toEqual([])
})
