import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { pages } from '../../scripts/docs.mjs'
import { HOUSE, imports, problemOf, structureProblems } from '../../scripts/structure.mjs'

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

  test('this house keeps them', () => {
    expect(structureProblems(root)).toEqual([])
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
