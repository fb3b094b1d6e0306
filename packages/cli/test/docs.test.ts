import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createProgram } from '../src/program.js'

test('the table of docs/cli.md has every command', () => {
  const page = readFileSync(new URL('../../../docs/cli.md', import.meta.url), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `'))
  const missing = createProgram({ code: 0 }).commands.flatMap((command) => {
    const own = rows.filter((row) => row.includes(`\`${command.name()}`))
    const names = command.commands.length > 0 ? command.commands.map((leaf) => leaf.name()) : [command.name()]
    return names.filter((name) => !own.some((row) => new RegExp(`[\`\\s]${name}[\`\\s]`).test(row)))
  })
  expect(missing).toEqual([])
})
