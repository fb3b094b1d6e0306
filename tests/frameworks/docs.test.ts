import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, Workshop } from '../../packages/cli/test/support/cli.js'

const here = fileURLToPath(new URL('.', import.meta.url))
const page = readFileSync(join(here, '../../docs/frameworks.md'), 'utf8')
const blocks = [...page.matchAll(/^```(js|ts)\n([\s\S]*?)^```$/gm)].map(
  (match) => [match[1] as string, match[2] as string] as const,
)

const workshop = new Workshop()
let service: Service
let folder: string
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
  mkdirSync(join(here, 'node_modules/.cache'), { recursive: true })
  folder = mkdtempSync(join(here, 'node_modules/.cache/docs-'))
  // Decorators as Nest wants them.
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { experimentalDecorators: true, target: 'es2022' } }),
  )
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await workshop.close()
})

test('the page has three examples', () => expect(blocks.map(([language]) => language)).toEqual(['js', 'js', 'ts']))

test.each(blocks)('docs/frameworks.md: the %s example runs as printed', async (language, code) => {
  const file = join(
    folder,
    `code-${blocks.findIndex(([, other]) => other === code)}.${language === 'js' ? 'mjs' : 'mts'}`,
  )
  writeFileSync(file, code.replaceAll('http://127.0.0.1:4100', service.url))
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), file], { cwd: folder })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const status = await new Promise((resolve) => child.once('close', resolve))
  expect([status, output]).toEqual([0, expect.stringMatching(/20[01] \{ paid: '42', token: '\d+' \}/)])
})
