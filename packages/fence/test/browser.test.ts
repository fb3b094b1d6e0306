import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { imports } from '../../../scripts/structure.mjs'

const src = fileURLToPath(new URL('../src/', import.meta.url))

/** Everything that a file imports, through files of this package. */
function reached(file: string, seen = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file)) return seen
  const found = imports(readFileSync(join(src, file), 'utf8')).map(({ specifier }: { specifier: string }) => specifier)
  seen.set(file, found)
  for (const specifier of found) {
    if (specifier.startsWith('.')) reached(join(dirname(file), specifier).replace(/\.js$/, '.ts'), seen)
  }
  return seen
}

it.each(['cas.ts', 'http.ts', 'http/hono.ts', 's3.ts', 'dynamodb.ts', 'index.ts'])('%s runs in a browser', (file) => {
  const all = [...reached(file)].flatMap(([where, found]) => found.map((specifier) => ({ where, specifier })))
  const outside = all.filter(({ specifier }) => !specifier.startsWith('.'))
  expect(outside.filter(({ specifier }) => !specifier.startsWith('@leasehold/'))).toEqual([])
  expect(outside.length).toBeGreaterThan(0)
})

it('detects a module that needs Node', () => {
  expect([...reached('fs.ts').values()].flat()).toContain('node:fs/promises')
})
