import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { MUTANTS } from './list.js'

it.each(MUTANTS.map((mutant) => [mutant.rule, mutant] as const))('%s: can be broken, and has a test', (_, mutant) => {
  const text = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
  expect(text(`../../src/${mutant.file}`).split(mutant.find)).toHaveLength(2)
  const tests = mutant.test === 'remote/apart.test.ts' ? ['hold/hold.test.ts'] : [mutant.test]
  const all = tests.map((test) => text(`../${test}`)).join('\n')
  const names = mutant.name.split('|')
  expect(names.filter((name) => !all.includes(name))).toEqual([])
})
