import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BIN, type Service, Workshop } from '../../cli/test/support/cli.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const PAGES = [
  'README.md',
  'docs/guide.md',
  'docs/client.md',
  'docs/guards.md',
  'docs/engines.md',
  'docs/backup.md',
  'docs/lab.md',
  'docs/compat.md',
  'docs/observability.md',
  'docs/platforms.md',
  'docs/operations.md',
  'docs/security.md',
]
/** The one thing that is changed in the printed code: the port, so that tests can run side by side. */
const PRINTED_URL = 'http://127.0.0.1:4100'

const workshop = new Workshop()
let service: Service
let folder: string

beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
  // Inside the repository, so that the packages are found as they are by users who have installed them.
  mkdirSync(join(root, 'node_modules/.cache'), { recursive: true })
  folder = mkdtempSync(join(root, 'node_modules/.cache/readme-'))
  // `npx leasehold` as after an installation.
  const npx = join(folder, 'npx')
  writeFileSync(npx, `#!/bin/sh\nshift\nexec '${process.execPath}' '${BIN}' "$@"\n`)
  chmodSync(npx, 0o755)
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await workshop.close()
})

interface Block {
  readonly page: string
  readonly line: number
  readonly language: 'js' | 'sh'
  readonly code: string
}

function blocks(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```(js|sh)\n([\s\S]*?)^```$/gm)].map((match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length,
    language: match[1] as 'js' | 'sh',
    code: match[2] as string,
  }))
}

function run(command: string, args: readonly string[], cwd: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}`, LEASEHOLD_URL: service.url },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

const all = PAGES.flatMap(blocks)

describe('the links on the pages', () => {
  test.each([
    'README.md',
    'CONTRIBUTING.md',
    'docs/guide.md',
    'docs/client.md',
    'docs/internals/field-cases.md',
    'docs/cli.md',
    'docs/guards.md',
    'docs/backup.md',
    'docs/lab.md',
    'docs/cluster.md',
    'docs/choosing.md',
    'docs/guards/postgresql.md',
    'docs/guards/mysql.md',
    'docs/guards/sqlite.md',
    'docs/guards/mappers.md',
    'docs/compat.md',
    'docs/frameworks.md',
    'docs/platforms.md',
    'docs/observability.md',
  ])('%s', (page) => {
    const text = readFileSync(join(root, page), 'utf8')
    const targets = [...text.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1] as string)
    const missing = targets.filter((target) => !existsSync(join(root, dirname(page), target)))
    expect(missing).toEqual([])
  })
})

describe('the code on the pages runs as printed', () => {
  test('finds all code blocks', () => {
    for (const page of PAGES) {
      const fences = readFileSync(join(root, page), 'utf8').match(/^```(js|ts|sh|bash|javascript|typescript)$/gm) ?? []
      expect(fences.length).toBeGreaterThan(0)
      expect(blocks(page)).toHaveLength(fences.length)
    }
  })

  test.each(all.map((block) => [`${block.page}:${block.line}`, block] as const))('%s', async (_, block) => {
    const cwd = mkdtempSync(join(folder, 'block-'))
    const script = join(cwd, `code.${block.language === 'js' ? 'mjs' : 'sh'}`)
    writeFileSync(script, block.code.replaceAll(PRINTED_URL, service.url))
    const { code, output } =
      block.language === 'js' ? await run(process.execPath, [script], cwd) : await run('sh', ['-eu', script], cwd)
    expect([code, output]).toEqual([0, output])
  })

  test('the first example prints what the readme shows', async () => {
    const first = blocks('README.md')[0] as Block
    expect(first.code.trim().split('\n').length).toBeLessThanOrEqual(12)
    const script = join(mkdtempSync(join(folder, 'first-')), 'code.mjs')
    writeFileSync(script, first.code.replaceAll(PRINTED_URL, service.url))
    const { output } = await run(process.execPath, [script], root)
    expect(output).toMatch(/^holding billing\/invoice-42 with token \d+\ndone: 42\n$/)
  })
})
