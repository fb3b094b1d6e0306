import { describe, expect, it } from 'vitest'
import { HAS_TESTDATA, textOf, WHERE } from '../testdata.js'
import { type Case, parseCases } from './datadriven.js'

const FOLDER = 'tikv+raft-rs/datadriven/src/testdata'

const numbers = (values: readonly string[]) => values.filter((value) => value !== '').map(Number)
const sum = (values: readonly string[]) => numbers(values).reduce((a, b) => a + b, 0)

function product(count: number, of: (a: number, b: number) => number): number {
  let [a, b] = [1, 1]
  for (let i = 1; i <= count; i++) [a, b] = [b, of(a, b)]
  return a
}

/** The commands of the parser's cases: each answers with a line per argument. */
const ANSWERS: Record<string, (values: readonly string[], i: number) => string | number> = {
  fibonacci: ([n]) => product(Number(n), (a, b) => a + b),
  factorial: ([n]) => Array.from({ length: Number(n) }, (_, i) => i + 1).reduce((a, b) => a * b, 1),
  sum,
  max: (values) => Math.max(0, ...numbers(values)),
  repeat_me: (values) => values.join(','),
}

function answer(one: Case): string[] {
  const of = ANSWERS[one.command]
  return of === undefined ? [] : one.args.map(({ key, values }, i) => `${key}=${of(values, i)}`)
}

const REWRITES: Record<string, (input: string) => string> = {
  noop: (input) => input,
  duplicate: (input) => `${input}\n${input}`,
  'duplicate-with-blank': (input) => `${input}\n\n${input}`,
  'no-output': () => '',
}

describe.skipIf(!HAS_TESTDATA)(`cases of another parser of such files${WHERE}`, () => {
  it.each(['datadriven/datadriven_1.txt', 'datadriven/datadriven_2.txt'])('%s', (file) => {
    const cases = parseCases(textOf(`${FOLDER}/${file}`))
    expect(cases.length).toBeGreaterThan(4)
    for (const one of cases) {
      expect([one.line, ...answer(one)]).toEqual([one.line, ...one.expected])
    }
  })

  it.each(['basic', 'eof-1', 'eof-2'])('rewrite/%s-after: the outputs that belong to the inputs', (name) => {
    const cases = parseCases(textOf(`${FOLDER}/rewrite/${name}-after`))
    expect(cases.length).toBeGreaterThan(0)
    for (const one of cases) {
      const output = (REWRITES[one.command] as (input: string) => string)(one.input)
      expect([one.line, one.expected.join('\n').trim()]).toEqual([one.line, output])
    }
  })

  it.each(['basic', 'eof-1', 'eof-2'])('rewrite/%s-before has the same directives, in the same order', (name) => {
    const shape = (suffix: string) =>
      parseCases(textOf(`${FOLDER}/rewrite/${name}-${suffix}`)).map(({ command, input }) => ({ command, input }))
    expect(shape('before')).toEqual(shape('after'))
  })

  it.each(['unknown_data_1.txt', 'unknown_data_2.txt'])('%s is refused, with its line', (file) => {
    expect(() => parseCases(textOf(`${FOLDER}/${file}`))).toThrow(/line [23]/)
  })
})

describe('the parser', () => {
  it('keeps blank lines in fenced output, and knows on which line it begins', () => {
    const [one] = parseCases('a\n----\n----\nx\n\ny\n----\n----\n\nb\n----\n')
    expect(one).toMatchObject({ command: 'a', line: 1, expected: ['x', '', 'y'], expectedLine: 4 })
  })

  it('refuses a fence that does not end, and a directive without a bar', () => {
    expect(() => parseCases('a\n----\n----\nx\n')).toThrow(/line 4: the output has no end/)
    expect(() => parseCases('a b=c\n')).toThrow(/line 1: no ----/)
  })
})
