import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const rows = readFileSync(join(root, 'docs/internals/field-cases.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ['))

test('has rows, each with a thread and an answer', () => {
  expect(rows.length).toBeGreaterThan(45)
  for (const row of rows) {
    expect(row).toMatch(/^\| \[[^\]]+\]\(https:\/\/github\.com\//)
    expect(row.split(' | ').at(-1)?.length).toBeGreaterThan(10)
  }
})

test('names existing tests only', () => {
  const missing: string[] = []
  for (const [, file, name] of rows.join('\n').matchAll(/`([^`]+\.test\.ts)`, "([^"]+)"/g)) {
    const path = join(root, file as string)
    const text = existsSync(path) ? readFileSync(path, 'utf8').replaceAll("\\'", "'") : ''
    if (!text.includes(name as string)) missing.push(`${file}: ${name}`)
  }
  expect(missing).toEqual([])
})
