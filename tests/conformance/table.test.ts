// WRITE_TABLE=1 npx vitest run tests/conformance/table.test.ts: writes the table; otherwise it is compared.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { abilityTable, FIXTURES, PAGE, pageWith } from './table.js'

it('docs/engines.md shows what the fixtures declare', () => {
  const page = readFileSync(PAGE, 'utf8')
  const wanted = pageWith(page, abilityTable())
  if (process.env.WRITE_TABLE === '1') return writeFileSync(PAGE, wanted)
  expect(page, 'out of date: WRITE_TABLE=1 npx vitest run tests/conformance/table.test.ts').toBe(wanted)
})

it('has a column for every engine on which the suite runs', () => {
  const folder = fileURLToPath(new URL('.', import.meta.url))
  const suites = readdirSync(folder).filter((name) => {
    return name.endsWith('.test.ts') && readFileSync(folder + name, 'utf8').includes('\nconformance(')
  })
  expect(FIXTURES.map(({ name }) => name)).toHaveLength(suites.length)
})

it('tells a gap from an ability', () => {
  const [first] = FIXTURES
  if (first === undefined) throw new Error('no fixtures')
  const lame = { ...first, name: 'lame', capabilities: { ...first.capabilities, watch: false } }
  expect(abilityTable([first, lame])).toContain('| watch | yes | **no** |')
})
