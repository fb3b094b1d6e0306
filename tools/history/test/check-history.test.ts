import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const MAIN = fileURLToPath(new URL('../src/check-history.ts', import.meta.url))

interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** The command as `npm run check-history` starts it. */
function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Run> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), MAIN, ...args], {
      cwd: ROOT,
      env: { ...process.env, INIT_CWD: ROOT, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const text = { out: '', err: '' }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.out += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.err += chunk))
    child.on('error', fail)
    child.on('close', (code) => done({ code, ...text }))
  })
}

describe('npm run check-history', { timeout: 240_000 }, () => {
  let folder = ''
  const file = (name: string) => join(folder, name)
  const event = (fields: object) => `${JSON.stringify(fields)}\n`

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'leasehold-histories-'))
    const held =
      event({ process: 'a', type: 'invoke', op: 'acquire' }) +
      event({ process: 'a', type: 'ok', op: 'acquire', token: '1' })
    const again = held.replaceAll('"a"', '"b"').replace('"1"', '"2"')
    await writeFile(file('good.jsonl'), held)
    await writeFile(file('bad.jsonl'), held + again)
    await writeFile(file('empty.log'), '')
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('says linearizable and exits with 0', async () => {
    const result = await run(['--model', 'fenced-mutex', file('good.jsonl'), file('empty.log')])
    expect(result).toEqual({
      code: 0,
      out: `${file('good.jsonl')} linearizable\n${file('empty.log')} linearizable\n`,
      err: '',
    })
  })

  it('finds files from where the user called, explains on the error output, and names what is missing', async () => {
    const result = await run(['--model=mutex', 'bad.jsonl', 'good.jsonl', 'missing.jsonl'], { INIT_CWD: folder })
    expect(result).toMatchObject({ code: 2, out: 'bad.jsonl not-linearizable\ngood.jsonl linearizable\n' })
    expect(result.err).toContain('line 3, process b: b acquire')
    expect(result.err).toContain('missing.jsonl: ENOENT')
  })
})
