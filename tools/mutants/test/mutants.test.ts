import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import {
  drift,
  failedTest,
  hunt,
  type HuntOrder,
  MUTANTS,
  type Mutant,
  OPEN_MUTANTS,
  mutantsCommand,
  patched,
  RULE_MUTANTS,
} from '../src/index.js'
import { PACKAGES_FOLDER } from '../src/copy.js'

const DOCUMENT = readFileSync(fileURLToPath(new URL('../../../docs/internals/mutants.md', import.meta.url)), 'utf8')

const NOTHING: HuntOrder = {
  scenariosFirst: [],
  scenarios: [],
  profile: 'swarm',
  seeds: 0,
  seedsFirst: 0,
  seedsAfterScenario: 0,
}

function mutantOf(id: string): Mutant {
  const mutant = MUTANTS.find((one) => one.id === id)
  if (!mutant) throw new Error(`no mutant ${id}`)
  return mutant
}

describe('the mutants', () => {
  it('fit the code of today, and change it', () => {
    for (const mutant of [...MUTANTS, ...OPEN_MUTANTS, ...RULE_MUTANTS]) {
      const texts = patched(mutant)
      expect(texts.size, mutant.id).toBeGreaterThan(0)
      for (const { find, replace } of mutant.patches) expect(replace, mutant.id).not.toBe(find)
    }
  })

  it('are at least 40, each with a name and a bug of its own, in every part of the system', () => {
    expect(MUTANTS.length).toBeGreaterThanOrEqual(40)
    expect(new Set(MUTANTS.map(({ id }) => id)).size).toBe(MUTANTS.length)
    expect(new Set(MUTANTS.map(({ bug }) => bug)).size).toBe(MUTANTS.length)
    const parts = [...new Set(MUTANTS.map(({ id }) => id.split('/')[0]))].sort()
    expect(parts).toEqual(['client', 'core', 'fence', 'raft', 'replica'])
  })

  it('have a row each in docs/internals/mutants.md, with a finder', () => {
    expect(drift(DOCUMENT, MUTANTS)).toEqual([])
    for (const { id } of OPEN_MUTANTS) expect(DOCUMENT).toContain(`\`${id}\``)
  })

  it.each(RULE_MUTANTS.map((mutant) => [mutant.id, mutant] as const))('%s has tests of that name', (_, mutant) => {
    const { tests = [], testName = '' } = mutant
    // The tests of the other thread are those of holds, run there.
    const files = tests.map((test) => test.replace('remote/apart', 'hold/hold'))
    const text = files.map((file) => readFileSync(join(PACKAGES_FOLDER, file), 'utf8')).join('\n')
    expect(testName.split('|').filter((name) => !text.includes(name))).toEqual([])
  })

  it('are refused when the code has changed under a patch', () => {
    const stale = {
      ...mutantOf('raft/two-votes'),
      patches: [{ file: 'raft/dist/election.js', find: 'nowhere', replace: '' }],
    }
    expect(() => patched(stale)).toThrow(/raft\/two-votes: "nowhere" is 0 times in raft\/dist\/election.js/)
  })
})

/** A few that show at once; `npm run mutants` hunts all of them. */
const AT_ONCE: readonly (readonly [id: string, scenario: string])[] = [
  ['client/monotonic-clock-only', 'S10'],
  ['core/no-lock-delay', 'S24d'],
  ['core/steal-untold', 'Q18'],
]

describe('the hunt', { timeout: 300_000 }, () => {
  it('finds nothing in the code as it is', async () => {
    const order = { ...NOTHING, scenariosFirst: AT_ONCE.map(([, scenario]) => scenario) }
    expect(await hunt(undefined, order)).toEqual({ id: 'none', profile: 'swarm', seeds: 0 })
  })

  for (const [id, scenario] of AT_ONCE) {
    it(`finds ${id} in ${scenario}`, async () => {
      expect((await hunt(mutantOf(id), { ...NOTHING, scenariosFirst: [scenario] })).scenario?.id).toBe(scenario)
    })
  }
})

describe('the direct tests of a mutant', { timeout: 300_000 }, () => {
  const mutant = mutantOf('replica/only-higher-term-conflicts')

  it('fail with the bug in, and the first that does is named', async () => {
    expect(await failedTest(mutant)).toEqual({
      file: 'replica/test/log/reconcile.test.ts',
      title: expect.stringContaining('is void when the entry at its index is of term 1'),
    })
  })

  it('pass without it', async () => {
    expect(await failedTest({ ...mutant, patches: [] })).toBeUndefined()
  })

  it('run on the sources when those are patched', async () => {
    const rule = RULE_MUTANTS.find(({ id }) => id === 'client-rules/unknown-options-are-refused') as Mutant
    expect((await hunt(rule, NOTHING)).test?.file).toBe('client/test/bad-input.test.ts')
  })

  it('must be there', async () => {
    const gone = { ...mutant, tests: ['replica/test/log/gone.test.ts'] }
    await expect(failedTest(gone)).rejects.toThrow(/only-higher-term-conflicts: its tests are not there/)
    expect(await failedTest({ ...mutant, tests: [] })).toBeUndefined()
  })
})

describe('npm run mutants', () => {
  const call = async (...args: string[]) => {
    const lines: string[] = []
    const io = { out: (line: string) => lines.push(line), read: () => DOCUMENT, write: () => {} }
    return { code: await mutantsCommand(args, io), text: lines.join('\n') }
  }

  it('checks the list without a hunt', async () => {
    expect(await call('--check')).toEqual({
      code: 0,
      text: `${MUTANTS.length} mutants: every patch fits, every one has its row`,
    })
  })

  it('says what is wrong with a call', async () => {
    expect(await call('raft/none')).toMatchObject({
      code: 2,
      text: expect.stringMatching(/^there is no mutant raft\/none\nusage/),
    })
    expect(await call('--seeds', '0')).toMatchObject({ code: 2, text: expect.stringMatching(/^--seeds is 1 to/) })
    expect(await call('--fast')).toMatchObject({ code: 2, text: expect.stringMatching(/^there is no --fast\nusage/) })
  })
})
