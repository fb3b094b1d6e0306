import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const MAIN = fileURLToPath(new URL('../../src/history/main.ts', import.meta.url))

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

describe('check-history', { timeout: 60_000 }, () => {
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
    await writeFile(file('broken.jsonl'), `${held}{"process":`)
    await writeFile(file('empty.log'), '')
    const writes = Array.from({ length: 40 }, (_, i) => `{:process ${i} :type :invoke :f :write :value ${i}}`)
    await writeFile(
      file('hard.edn'),
      `[${writes.join('\n')} {:process -1 :type :invoke :f :read} {:process -1 :type :ok :f :read :value -1}]`,
    )
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

  it('says not-linearizable, explains it on the error output, and exits with 1', async () => {
    const result = await run(['--model=mutex', 'bad.jsonl', 'good.jsonl'], { INIT_CWD: folder })
    expect(result).toMatchObject({ code: 1, out: 'bad.jsonl not-linearizable\ngood.jsonl linearizable\n' })
    expect(result.err).toContain('line 3, process b: b acquire')
    expect(result.err).toContain('held by a')
  })

  it('says unknown when the budget is used up, and exits with 1', async () => {
    const result = await run(['--model', 'register', '--budget', '20ms', file('hard.edn')])
    expect(result).toMatchObject({ code: 1, out: `${file('hard.edn')} unknown\n` })
    expect(result.err).toContain('no answer for 41 operations within the limit of time')
  })

  it('names file and line of bad input, goes on with the others, and exits with 2', async () => {
    const result = await run(['--model', 'mutex', file('broken.jsonl'), file('missing.jsonl'), file('good.jsonl')])
    expect(result).toMatchObject({ code: 2, out: `${file('good.jsonl')} linearizable\n` })
    expect(result.err).toContain(`${file('broken.jsonl')}:3: not JSON`)
    expect(result.err).toContain(`${file('missing.jsonl')}: ENOENT`)
  })

  it('writes one JSON object per file', async () => {
    const result = await run(['--model', 'fenced-mutex', '--json', file('bad.jsonl'), file('broken.jsonl')])
    const [bad, broken] = result.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(bad).toMatchObject({
      verdict: 'not-linearizable',
      operations: 2,
      explanation: { stuck: { line: 3, process: 'b' } },
    })
    expect(broken).toMatchObject({ file: file('broken.jsonl'), error: expect.stringContaining('not JSON') as string })
    expect(result.code).toBe(2)
  })

  it.each([
    [[], /--model is one of/],
    [['--model', 'lock', 'x.log'], /--model is one of/],
    [['--model', 'mutex'], /no file to check/],
    [['--model', 'mutex', '--budget', 'soon', 'x.log'], /--budget/],
    [['--model', 'permits', '--permits', '0', 'x.log'], /--permits/],
    [['--model', 'mutex', '--verbose', 'x.log'], /--verbose/],
  ])('refuses %j', async (args, message) => {
    const result = await run(args)
    expect(result).toMatchObject({ code: 2, out: '' })
    expect(result.err).toMatch(message)
    expect(result.err).toContain('usage: npm run check-history')
  })
})
