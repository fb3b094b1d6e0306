import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { pages } from '../../scripts/docs.mjs'
import {
  HOUSE,
  imports,
  judge,
  problemOf,
  shrink,
  staleExceptions,
  structureProblems,
} from '../../scripts/structure.mjs'
import { SLOW_TESTS } from '../../scripts/slow-tests.mjs'
import { cyclesOf, importGraph, loopOf } from '../../scripts/structure/cycles.mjs'
import { confusableNames } from '../../scripts/structure/names.mjs'
import { lineCount, longFunctions } from '../../scripts/structure/sizes.mjs'
import { parseText } from '../../scripts/structure/sources.mjs'
import { privateMembers } from '../../scripts/structure/style.mjs'
import { dialectWords } from '../../scripts/structure/words.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))

const check = (name: keyof typeof HOUSE, inside: string, specifier: string, typeOnly = false) =>
  problemOf({ name, rules: HOUSE[name], inside, specifier, typeOnly })

describe('the floors of the house', () => {
  test('imports go down only', () => {
    expect(check('replica', 'log.ts', '@leasehold/core')).toBeUndefined()
    expect(check('core', 'state.ts', '@leasehold/raft')).toMatch('core may not import raft')
    expect(check('client', 'hold.ts', '@leasehold/server')).toMatch('client may not import server')
    expect(check('server', 'app.ts', 'leasehold')).toMatch('server may not import leasehold')
    expect(check('leasehold', 'locks.ts', '@leasehold/server')).toMatch('leasehold may not import server')
    expect(check('cli', 'main.ts', '@leasehold/lab')).toBeUndefined()
  })

  test('some rooms may only be looked into: types', () => {
    expect(check('fence', 'pg.ts', '@leasehold/client', true)).toBeUndefined()
    expect(check('fence', 'pg.ts', '@leasehold/client')).toMatch('except with `import type`')
  })

  test('the machine is touched only where it is bound', () => {
    expect(check('core', 'a.ts', 'node:fs')).toMatch('may not import node:fs')
    expect(check('replica', 'log/log.ts', 'node:fs')).toMatch('may not import node:fs')
    expect(check('replica', 'node/disk.ts', 'node:fs')).toBeUndefined()
  })

  test('core, raft, client and fence have no runtime dependencies', () => {
    expect(check('client', 'a.ts', 'ws')).toMatch('no runtime dependencies')
    expect(check('client', 'a.ts', 'ws', true)).toBeUndefined()
    expect(check('leasehold', 'a.ts', 'ws')).toBeUndefined()
  })

  test('a relative import stays in its package', () => {
    expect(check('core', 'state/a.ts', '../b.js')).toBeUndefined()
    expect(check('core', 'state/a.ts', '../../../raft/src/types.js')).toMatch('leaves the package')
  })

  test('finds every form of import, and none in comments', () => {
    const source = [
      `import { x } from 'a'`,
      `import type { Y } from 'b'`,
      `export * from 'c'`,
      `import {`,
      `  z,`,
      `} from 'd'`,
      `// import 'not'`,
      `/** import 'neither' */`,
      `const e = await import('e')`,
      `import 'f'`,
    ].join('\n')
    const found = imports(source).map(({ specifier, typeOnly }) => (typeOnly ? `type ${specifier}` : specifier))
    expect(found).toEqual(['a', 'type b', 'c', 'd', 'e', 'f'])
  })
})

describe('import cycles', () => {
  const graphOf = async (files: Record<string, string>, sisters?: Map<string, string>) =>
    importGraph(await Promise.all(Object.entries(files).map(([path, text]) => parseText(path, text))), sisters)

  test('reports a cycle of types over three files, and the way around it', async () => {
    const graph = await graphOf({
      'a.ts': `import type { B } from './b.js'`,
      'b.ts': `import { type C } from './c.js'`,
      'c.ts': `export type { A } from './a.js'`,
      'd.ts': `import './a.js'`,
    })
    expect(cyclesOf(graph)).toEqual([['a.ts', 'b.ts', 'c.ts']])
    expect(loopOf(graph, ['a.ts', 'b.ts', 'c.ts'])).toEqual(['a.ts', 'b.ts', 'c.ts', 'a.ts'])
  })

  test('follows dynamic imports, import types and tsx files', async () => {
    const graph = await graphOf({
      'x/a.ts': `export const load = () => import('../b.js')`,
      'b.tsx': `export type A = import('./x/a.js').A`,
    })
    expect(cyclesOf(graph)).toEqual([['b.tsx', 'x/a.ts']])
  })

  test('follows imports between packages', async () => {
    const sisters = new Map([
      ['@leasehold/one', 'one.ts'],
      ['@leasehold/two', 'two.ts'],
    ])
    const files = { 'one.ts': `import '@leasehold/two'`, 'two.ts': `import type { X } from '@leasehold/one'` }
    expect(cyclesOf(await graphOf(files, sisters))).toEqual([['one.ts', 'two.ts']])
  })

  test('accepts a graph without cycles', async () => {
    const graph = await graphOf({ 'a.ts': `import './b.js'\nimport './c.js'`, 'b.ts': `import './c.js'`, 'c.ts': '' })
    expect(cyclesOf(graph)).toEqual([])
  })
})

describe('sizes', () => {
  const lines = (count: number) => '  x()\n'.repeat(count)

  test('counts the lines of functions, methods and arrow functions with the first and the last', async () => {
    const text = [
      `function four() {\n${lines(2)}}`,
      `class A {\n  #five() {\n${lines(3)}  }\n  short() {}\n}`,
      `const five = () => {\n${lines(3)}}`,
      `run(() => {\n${lines(3)}})`,
    ].join('\n')
    const found = longFunctions(await parseText('a.ts', text), 4).map(({ name, line, lines }) => [name, line, lines])
    expect(found).toEqual([
      ['#five', 6, 5],
      ['five', 13, 5],
      ['argument of run', 18, 5],
    ])
  })

  test('counts the lines of a file, whether or not it ends with one', () => {
    expect(['', 'a', 'a\n', 'a\nb'].map(lineCount)).toEqual([0, 1, 1, 2])
  })
})

describe('private members', () => {
  test('refuses keywords and underscores', async () => {
    const text = `class A { private a = 1; protected b() {} _c = 1; #d = 2; e = 3; constructor(private readonly f: number) {} }`
    const found = privateMembers(await parseText('a.ts', text)).map(({ what }) => what)
    expect(found).toEqual(['private a', 'protected b', '_c', 'private f'])
  })
})

describe('file names', () => {
  const keys = (paths: string[], alike?: Set<string>) => confusableNames(paths, alike).map(({ key }) => key)

  test('refuses one name in two folders, except index', () => {
    expect(keys(['p/a/run.ts', 'p/b/run.tsx', 'p/a/index.ts', 'p/b/index.ts'])).toEqual(['run'])
  })

  test('accepts one name in folders that are alike', () => {
    expect(keys(['p/a/run.ts', 'p/b/run.ts'], new Set(['p']))).toEqual([])
    expect(keys(['p/a/run.ts', 'p/run.ts'], new Set(['p']))).toEqual(['run'])
  })

  test('refuses names that differ by a plural s', () => {
    expect(keys(['p/hold.ts', 'p/x/holds.ts', 'p/address.ts'])).toEqual(['hold/holds'])
  })
})

describe('words', () => {
  test('finds words that the project does not use, with their lines', () => {
    expect(dialectWords('Nobody holds it.\nIt comes about anew.\nfor goodness')).toEqual([
      { word: 'nobody', line: 1 },
      { word: 'comes about', line: 2 },
      { word: 'anew', line: 2 },
    ])
  })
})

describe('exceptions', () => {
  const findings = { words: new Map([['core', { count: 2, messages: ['core/a.ts:1: "who"', 'core/a.ts:2: "anew"'] }]]) }

  test('allow what they count, and no more', () => {
    expect(judge(findings, { words: { core: { count: 2 } } })).toEqual({ problems: [], stale: [] })
    expect(judge(findings, { words: { core: { count: 1 } } }).problems).toHaveLength(3)
    expect(judge(findings, {}).problems).toHaveLength(2)
  })

  test('are stale when they allow more than there is, and can be lowered', () => {
    const generous = { words: { core: { count: 3, reason: 'why' }, raft: { count: 1 } } }
    expect(judge(findings, generous).stale).toHaveLength(2)
    expect(shrink(findings, generous)).toEqual({ words: { core: { count: 2, reason: 'why' } } })
  })
})

describe('this repository', () => {
  test('keeps the rules of the structure', async () => {
    expect(await structureProblems(root)).toEqual([])
  })

  test('has no stale exception (node scripts/structure.mjs --shrink lowers them)', async () => {
    expect(await staleExceptions(root)).toEqual([])
  })

  test('has the slow test files that start first', () => {
    expect(SLOW_TESTS.filter((file) => !existsSync(root + file))).toEqual([])
  })
})

describe('generated pages', () => {
  test('node scripts/docs.mjs --check: the pages are up to date', async () => {
    const { existsSync, readFileSync } = await import('node:fs')
    for (const [file, text] of await pages()) {
      expect([file, existsSync(root + file) ? readFileSync(root + file, 'utf8') : '']).toEqual([file, text])
    }
  })
})
