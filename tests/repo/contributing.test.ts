import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

test('CONTRIBUTING lists every npm script', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const rows = read('CONTRIBUTING.md')
    .split('\n')
    .filter((line) => line.startsWith('| `npm '))
    .map((line) => line.split('|')[1] as string)
    .join('\n')
  const missing = Object.keys(scripts).filter((name) => !new RegExp(`[ \`]${name}[ \`]`).test(rows))
  expect(missing).toEqual([])
})
