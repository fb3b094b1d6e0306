import { HistoryError, type Operation } from '@leasehold/lab'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatJsonl, type HistoryEvent, pairEvents, parseHistory } from '../src/index.js'
import { EdnReader } from '../src/formats/edn.js'
import { parseJsonl } from '../src/formats/parse-jsonl.js'

function brief(operations: readonly Operation[]): string[] {
  return operations.map(({ process, op, outcome, value, result }) =>
    [process, op, outcome, JSON.stringify(value), JSON.stringify(result)].join(' '),
  )
}

function errorOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(HistoryError)
    return `${(error as HistoryError).line ?? '-'}: ${(error as HistoryError).message}`
  }
  return 'no error'
}

function values(text: string) {
  return new EdnReader(text).elements().map(({ value }) => value)
}

describe('EDN', () => {
  it('reads every kind of value', () => {
    expect(
      values('nil true -7 +3 2.5 1e3 4N 99999999999999999999 1/2 :k ::l sym "a\\n\\u0041" \\a \\newline ##Inf'),
    ).toEqual([
      null,
      true,
      -7,
      3,
      2.5,
      1000,
      4,
      99999999999999999999n,
      '1/2',
      ':k',
      ':l',
      'sym',
      'a\nA',
      'a',
      '\n',
      '##Inf',
    ])
    expect(values('x [1 (2 #{3})] {:a {"b" nil}, 1 2}')).toEqual([
      'x',
      [1, [2, [3]]],
      new Map<string, unknown>([
        ['a', new Map([['b', null]])],
        ['1', 2],
      ]),
    ])
  })

  it('skips comments, commas, tags, metadata and discarded forms', () => {
    expect(values('; note\n#_ {:a 1} 1, #_ 2 #inst "2020" ^:m [#_ 3] #a.b{:c 4} \'q ; end')).toEqual([
      1,
      '2020',
      [],
      new Map([['c', 4]]),
      'q',
    ])
  })

  it('gives the elements of one vector or list, with their lines', () => {
    expect(new EdnReader('; first\n[1\n 2]\n').elements()).toEqual([
      { line: 2, value: 1 },
      { line: 3, value: 2 },
    ])
    expect(values('[1] [2]')).toEqual([[1], [2]])
    expect(values('')).toEqual([])
  })

  it.each([
    ['[1\n 2', '2: no ] for what line 1 opens'],
    ['1\n]', '2: ] closes nothing'],
    ['{:a}', '1: a map with a key and no value'],
    ['\n"abc', '2: a text without an end'],
    ['12x', '1: not a number: 12x'],
    ['"\\q"', '1: unknown escape \\q'],
    ['#_', '1: the text ends where a value should be'],
    [`${'['.repeat(90)}`, '1: values nested deeper than 64'],
  ])('refuses %j', (text, message) => expect(errorOf(() => values(text))).toBe(message))

  it('reads events as vectors of maps, lists, maps one by one, records and results of a test', () => {
    const maps = '{:process 0, :type :invoke, :f :write, :value 1} {:process 0, :type :ok, :f :write, :value 1}'
    const expected = ['0 write ok 1 1']
    const record = maps.replaceAll('{', '#jepsen.history.Op{:index 3, :time 12, ')
    for (const text of [
      maps,
      `[${maps}]`,
      `(${maps})`,
      `{:valid? true :history [${maps}]}`,
      record,
      `\uFEFF${maps}\r\n`,
    ]) {
      expect(brief(parseHistory('h.edn', text))).toEqual(expected)
    }
  })

  it('leaves out faults and keeps processes that are keywords', () => {
    const text = `{:process :nemesis :type :info :f :start} {:process :a :type :invoke :f :read :value nil}
      {:type :info :f :stop :process :nemesis-2 :value [1]} {:process :a :type :info :f :read :error :timeout}`
    expect(brief(parseHistory('h.edn', text))).toEqual(['a read unknown  '])
  })

  it('finds a token, an owner and a mode inside the value', () => {
    const text = `{:process 0 :type :invoke :f :acquire :value {:client "n1"}}
      {:process 0 :type :ok :f :acquire :value {:client "n1" :fence 7 :mode :shared}}`
    expect(parseHistory('h.edn', text)[0]).toMatchObject({ owner: 'n1', token: 7n })
    const mode = '{:process 0 :type :invoke :f :acquire :value :shared}'
    expect(parseHistory('h.edn', mode)[0]).toMatchObject({ mode: 'shared', outcome: 'unknown' })
  })
})

describe('etcd logs', () => {
  const log = (...lines: string[]) => lines.map((line) => `INFO  jepsen.util - ${line}\n`).join('')

  it('reads values, pairs, nil and lost answers', () => {
    const text = log(
      '0\t:invoke\t:read\tnil',
      '1\t:invoke\t:write\t4',
      '0\t:ok\t:read\tnil',
      '2\t:invoke\t:cas\t[1 2]',
      '1\t:info\t:write\t:timed-out',
      '2\t:fail\t:cas\t[1 2]',
      '3\t:invoke\t:cas\t[4 0]',
      '4\t:invoke\t:read\tnil',
      '4\t:fail\t:read\t:timed-out',
      '5\t:invoke\t:read\tnil',
      '5\t:ok\t:read\t4',
    )
    expect(brief(parseHistory('etcd.log', text))).toEqual([
      '0 read ok  ',
      '1 write unknown 4 ',
      '2 cas ok [1,2] false',
      '3 cas unknown [4,0] ',
      '4 read fail  ',
      '5 read ok 4 4',
    ])
  })

  it('reads nothing from an empty log', () => expect(parseHistory('etcd.log', '\n')).toEqual([]))

  it('leaves out other lines, but not broken ones', () => {
    const good = `INFO  jepsen.core - Worker 0 starting\n${log(':nemesis\t:info\t:start\tnil', '0\t:invoke\t:write\t1')}`
    expect(brief(parseHistory('etcd.log', good))).toEqual(['0 write unknown 1 '])
    expect(errorOf(() => parseHistory('etcd.log', `${good}${log('0\t:o')}`))).toMatch(/^4: not an event/)
    expect(errorOf(() => parseHistory('etcd.log', 'hello\n'))).toBe('1: no event in the whole log')
    expect(errorOf(() => parseHistory('etcd.log', log('0\t:ok\t:read\t1')))).toMatch(/^1: process 0 ends an operation/)
  })
})

describe('our own format', () => {
  const lines = (...events: object[]) => events.map((event) => JSON.stringify(event)).join('\n')

  it('pairs by process, or by id', () => {
    const text = lines(
      { process: 'p', type: 'invoke', op: 'acquire', lock: 'a', id: 1 },
      { process: 'p', type: 'invoke', op: 'acquire', lock: 'b', id: 2 },
      { process: 'p', type: 'ok', id: 2, token: '9007199254740993', slot: 1 },
      { process: 'p', type: 'fail', op: 'acquire', id: 1, error: 'busy' },
      { process: 'p', type: 'info', op: 'session-ended' },
    )
    expect(parseHistory('h.jsonl', `# note\n\n${text}\n`)).toMatchObject([
      { key: 'a', outcome: 'fail', line: 3 },
      { key: 'b', outcome: 'ok', token: 9007199254740993n, slot: 1, invokedAt: 1, returnedAt: 2 },
    ])
  })

  it.each([
    ['{"process":', /^1: not JSON/],
    ['[1]', /^1: an event is a JSON object/],
    ['{"type":"invoke","op":"read"}', /^1: an event without a process/],
    ['{"process":1,"type":"began","op":"read"}', /^1: the type of an event is invoke, ok, fail or info, not "began"/],
    ['{"process":1,"type":"invoke"}', /^1: an invocation without an operation/],
    [
      '{"process":1,"type":"invoke","op":"read"}\n{"process":1,"type":"invoke","op":"read"}',
      /^2: process 1 invokes while .* line 1/,
    ],
    ['{"process":1,"type":"invoke","op":"read"}\n{"process":1,"type":"ok","op":"write"}', /^2: process 1 invoked read/],
    ['\n{"process":1,"type":"ok","op":"read"}', /^2: process 1 ends an operation/],
    ['{"process":1,"type":"invoke","op":"acquire","token":9007199254740993}', /^1: .* lost digits/],
    ['{"process":1,"type":"invoke","op":"acquire","token":"x"}', /^1: a token is an integer/],
    ['{"process":1,"type":"invoke","op":"acquire","slot":-1}', /^1: slot is a whole number/],
    ['{"process":1,"type":"invoke","op":"acquire","mode":"both"}', /^1: a mode is exclusive or shared/],
  ])('refuses %s', (text, message) => expect(errorOf(() => parseHistory('h.jsonl', text))).toMatch(message))

  it('refuses a file whose format it does not know', () => {
    expect(errorOf(() => parseHistory('history.xml', ''))).toMatch(/no format for history.xml/)
  })

  it('reads back what it writes', () => {
    const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
    const calls = fc.array(
      fc.record({
        process: fc.constantFrom('p', 'q'),
        op: fc.constantFrom('acquire', 'release', 'write'),
        key: optional(fc.string()),
        value: optional(fc.oneof(fc.integer(), fc.string(), fc.tuple(fc.boolean(), fc.constant(null)))),
        owner: optional(fc.string()),
        mode: optional(fc.constantFrom('shared' as const, 'exclusive' as const)),
        token: optional(fc.bigInt({ min: 1n, max: 2n ** 63n })),
        slot: optional(fc.nat()),
        permits: optional(fc.nat()),
      }),
    )
    fc.assert(
      fc.property(calls, (all) => {
        const events = all.flatMap((call, i): HistoryEvent[] => [
          { ...call, id: String(i), type: 'invoke' },
          { process: call.process, id: String(i), type: 'ok', op: call.op },
        ])
        const written = parseJsonl(formatJsonl(events)).map(({ line: _line, ...operation }) => operation)
        expect(written).toEqual(pairEvents(events).map(({ line: _line, ...operation }) => operation))
      }),
    )
  })
})
