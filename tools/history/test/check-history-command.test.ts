import { describe, expect, it } from 'vitest'
import { checkHistoryCommand } from '../src/check-history-command.js'

const HELD = [
  { process: 'a', type: 'invoke', op: 'acquire' },
  { process: 'a', type: 'ok', op: 'acquire', token: '1' },
]
  .map((event) => `${JSON.stringify(event)}\n`)
  .join('')

const events = (type: string) =>
  Array.from({ length: 40 }, (_, i) => `{:process ${i} :type ${type} :f :write :value ${i}}`)

const FILES: Record<string, string> = {
  'good.jsonl': HELD,
  'bad.jsonl': HELD + HELD.replaceAll('"a"', '"b"').replace('"1"', '"2"'),
  'broken.jsonl': `${HELD}{"process":`,
  'hard.edn': [
    ...events(':invoke'),
    ...events(':ok'),
    '{:process -1 :type :invoke :f :read} {:process -1 :type :ok :f :read :value -1}',
  ].join('\n'),
  'initial.edn': '{:process 0 :type :invoke :f :read} {:process 0 :type :ok :f :read :value 7}',
  'slots.jsonl': HELD,
}

/** The command over files in memory and a clock that moves a millisecond whenever it is read. */
async function run(...args: string[]) {
  const text = { out: '', err: '' }
  let clock = 0
  const code = await checkHistoryCommand(args, {
    out: (more) => (text.out += more),
    err: (more) => (text.err += more),
    readText: async (file) => FILES[file] ?? Promise.reject(new Error(`ENOENT: ${file}`)),
    now: () => clock++,
  })
  return { code, ...text }
}

describe('check-history', () => {
  it('says linearizable and exits with 0', async () => {
    expect(await run('--model', 'fenced-mutex', 'good.jsonl')).toEqual({
      code: 0,
      out: 'good.jsonl linearizable\n',
      err: '',
    })
  })

  it('says not-linearizable, explains it on the error output, and exits with 1', async () => {
    const result = await run('--model=mutex', 'bad.jsonl', 'good.jsonl')
    expect(result).toMatchObject({ code: 1, out: 'bad.jsonl not-linearizable\ngood.jsonl linearizable\n' })
    expect(result.err).toContain('line 3, process b: b acquire')
    expect(result.err).toContain('held by a')
    expect(await run('--model=mutex', '--quiet', 'bad.jsonl')).toMatchObject({ code: 1, err: '' })
  })

  it('says unknown when the budget is used up, and exits with 1', async () => {
    const result = await run('--model', 'register', '--budget', '80ms', 'hard.edn')
    expect(result).toMatchObject({ code: 1, out: 'hard.edn unknown\n' })
    expect(result.err).toContain('no answer for 41 operations within the limit of time')
  })

  it('names file and line of bad input, checks the other files, and exits with 2', async () => {
    const result = await run('--model', 'mutex', 'broken.jsonl', 'missing.jsonl', 'notes.xml', 'good.jsonl')
    expect(result).toMatchObject({ code: 2, out: 'good.jsonl linearizable\n' })
    expect(result.err).toContain('broken.jsonl:3: not JSON')
    expect(result.err).toContain('missing.jsonl: ENOENT')
  })

  it('writes one JSON object per file', async () => {
    const result = await run('--model', 'fenced-mutex', '--json', 'bad.jsonl', 'broken.jsonl')
    const [bad, broken] = result.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(bad).toMatchObject({
      file: 'bad.jsonl',
      model: 'fenced-mutex',
      verdict: 'not-linearizable',
      operations: 2,
      explanation: { stuck: { line: 3, process: 'b' } },
    })
    expect(broken).toMatchObject({ file: 'broken.jsonl', error: expect.stringContaining('not JSON') as string })
    expect(result.code).toBe(2)
  })

  it('takes what a history leaves open from its options', async () => {
    expect(await run('--model', 'register', 'initial.edn')).toMatchObject({ code: 1 })
    expect(await run('--model', 'register', '--initial', '7', 'initial.edn')).toMatchObject({ code: 0 })
    expect(await run('--model', 'permits', 'slots.jsonl')).toMatchObject({ code: 2 })
    expect(await run('--model', 'permits', '--permits', '1', 'slots.jsonl')).toMatchObject({ code: 0 })
  })

  it('shows its usage', async () => {
    expect(await run('--help')).toMatchObject({ code: 0, out: expect.stringContaining('usage:') as string, err: '' })
  })

  it.each([
    [[], /--model is one of/],
    [['--model', 'lock', 'x.log'], /--model is one of/],
    [['--model', 'toString', 'x.log'], /--model is one of/],
    [['--model', 'mutex'], /no file to check/],
    [['--model', 'mutex', '--budget', 'soon', 'x.log'], /--budget/],
    [['--model', 'mutex', '--budget', '0', 'x.log'], /--budget/],
    [['--model', 'permits', '--permits', '0', 'x.log'], /--permits/],
    [['--model', 'register', '--initial', '{', 'x.log'], /--initial is JSON/],
    [['--model', 'mutex', '--verbose', 'x.log'], /--verbose/],
  ])('refuses %j', async (args, message) => {
    const result = await run(...args)
    expect(result).toMatchObject({ code: 2, out: '' })
    expect(result.err).toMatch(message)
    expect(result.err).toContain('usage: npm run check-history')
  })
})
