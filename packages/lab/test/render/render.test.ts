import { describe, expect, it } from 'vitest'
import { htmlPage, terminalPicture } from '../../src/render/index.js'
import { runScenario, scenarioOf } from '../../src/scenarios/index.js'

async function played(id: string, seed?: number) {
  const scenario = scenarioOf(id)
  if (scenario === undefined) throw new Error(`no ${id}`)
  return runScenario(scenario, seed === undefined ? {} : { seed })
}

describe('the terminal picture', () => {
  it('shows lanes, what happened, and how it came out', async () => {
    const text = terminalPicture(await played('R1'))
    expect(text).toContain('R1  Redlock: the clock of one node jumps forward')
    expect(text).toMatch(/^ {2}C1 +█+$/m)
    expect(text).toMatch(/^ {4}holds L +━+$/m)
    expect(text).toContain('its wall clock jumps by +15 s')
    expect(text).toContain('overlap: C2 got L while C1 still had a valid hold of it')
    expect(text).toContain('violation shown, as expected: lost-update, overlap')
  })

  it('shows tokens as people read them, and a refusal with both', async () => {
    const text = terminalPicture(await played('A1g'))
    expect(text).toMatch(/refuses the write of C1 \(token [0-9]{1,3}\): it has seen token [0-9]{1,3}$/m)
    expect(text).not.toMatch(/[0-9]{15}/)
    expect(terminalPicture(await played('R14c'))).toMatch(/token 1:[0-9]+\): it has seen token 2:[0-9]+$/m)
  })

  it('shows holds, faults of members, and each leader with its time, for a cluster', async () => {
    const text = terminalPicture(await played('S1'))
    expect(text).toMatch(/^ {4}holds L +━{40,} +token 2$/m)
    expect(text).toMatch(/^ {2}N3 +★ +⚡✝+ +★ leads$/m)
    expect(text).toContain('N3   loses power for 5 s')
    expect(text).toMatch(/N[12] {3}leads in term 2/)
    expect(text).toContain('C1   releases L')
    expect(terminalPicture(await played('P1'))).toMatch(/N3 +leads no more$/m)
    // One of the seeds in which a member that joined later leads.
    const grown = terminalPicture(await played('P10', 7))
    expect(grown).toMatch(/^ {2}N[45] +★/m)
    expect(terminalPicture(await played('D6'))).toContain('N3   stopped: writing N3/log-1-1 failed: EIO')
  })

  it('says where a run is not as expected', async () => {
    const scenario = scenarioOf('R2c')
    if (scenario === undefined) throw new Error('no R2c')
    const result = await runScenario({ ...scenario, expect: { violations: ['overlap'], values: { U: 7 } } })
    expect(result.ok).toBe(false)
    expect(terminalPicture(result)).toContain('values.U: expected 7, observed 1')
  })
})

describe('the page', () => {
  it('marks the violation, the leases and the tokens', async () => {
    const shown = htmlPage(await played('R1'))
    expect(shown.match(/class="violation"><title>/g)).toHaveLength(2)
    expect(shown).toContain('class="overlap"')
    const clean = htmlPage(await played('A1g'))
    expect(clean).not.toContain('class="violation"')
    expect(clean).toMatch(/class="refused"/)
    expect(clean).toMatch(/granted [0-9]{1,3}</)
  })

  it('does not let a text of a scenario become markup', async () => {
    const scenario = scenarioOf('R9c')
    if (scenario === undefined) throw new Error('no R9c')
    const page = htmlPage(await runScenario({ ...scenario, title: '<b onclick="x">', text: '"&<script>' }))
    expect(page).not.toMatch(/<b onclick|<script/)
  })
})
