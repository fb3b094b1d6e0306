import { checkHistory, type ModelName, modelNamed, type ModelOptions } from '@leasehold/lab'
import { describe, expect, it } from 'vitest'
import { parseJsonl } from '../../../../tools/history/src/formats/parse-jsonl.js'

/**
 * Short histories: one line per event, `process type op details`, where details are `name=value`.
 * `a! acquire` invokes, `a acquire` is acknowledged, `a? acquire` loses its answer, `a= acquire` is all at once.
 */
function verdict(model: ModelName, lines: string, options: ModelOptions = {}): string {
  const events = lines
    .split(/\n|;/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .flatMap((line) => {
      const [who = '', op, ...details] = line.split(/\s+/)
      const process = who.replace(/[!?=]$/, '')
      const fields = Object.fromEntries(details.map((detail) => detail.split('=') as [string, string]).map(number))
      const types = who.endsWith('!')
        ? ['invoke']
        : who.endsWith('?')
          ? ['info']
          : who.endsWith('=')
            ? ['invoke', 'ok']
            : ['ok']
      return types.map((type) => JSON.stringify({ process, type, op, ...fields }))
    })
  return checkHistory(modelNamed(model, options), parseJsonl(events.join('\n'))).verdict
}

function number([name, value]: [string, string]): [string, unknown] {
  return [name, /^([0-9[]|false$)/.test(value) && name !== 'token' ? JSON.parse(value) : value]
}

const GOOD = 'linearizable'
const BAD = 'not-linearizable'
type Row = [expected: string, what: string, lines: string, options?: ModelOptions]

function table(model: ModelName, rows: readonly Row[]): void {
  describe(model, () => {
    it.each(rows)('%s: %s', (expected, _what, lines, options) => expect(verdict(model, lines, options)).toBe(expected))
  })
}

table('register', [
  [GOOD, 'reads nil before the first write', 'a= read; a= write value=1; b= read value=1'],
  [GOOD, 'reads the initial value', 'a= read value=7', { initial: 7 }],
  [BAD, 'reads an old value after a write returned', 'a= write value=1; a= write value=2; b= read value=1'],
  [GOOD, 'reads an old value while a write is open', 'a= write value=1; a! write value=2; b= read value=1; a write'],
  [
    BAD,
    'goes back while a write is open',
    'a= write value=1; a! write value=2; b= read value=2; b= read value=1; a write',
  ],
  [GOOD, 'shows a lost write later', 'a= write value=1; b! write value=2; b? write; a= read value=1; a= read value=2'],
  [
    BAD,
    'shows a lost write and forgets it',
    'a= write value=1; b! write value=2; b? write; a= read value=2; a= read value=1',
  ],
  [
    GOOD,
    'needs both of two lost writes of one value',
    'a! write value=1; a? write; c= write value=2; c= read value=1; b! write value=1; b? write; c= write value=3; c= read value=1',
  ],
  [
    BAD,
    'would need a lost write twice',
    'a! write value=1; a? write; c= write value=2; c= read value=1; c= write value=3; c= read value=1',
  ],
  [
    GOOD,
    'writes the present value again, but later',
    'a= write value=2; b! write value=2; c! write value=3; b write; c write; d= read value=2',
  ],
  [BAD, 'reads what nobody wrote', 'a= write value=1; b= read value=3'],
  [BAD, 'swaps a value that is not there', 'a= write value=1; b= cas value=[2,3]'],
  [GOOD, 'swaps', 'a= write value=1; b= cas value=[1,3]; a= read value=3'],
])

table('mutex', [
  [GOOD, 'one after the other', 'a= acquire; a= release; b= acquire'],
  [BAD, 'two holders', 'a= acquire; b= acquire'],
  [GOOD, 'waits while the release is open', 'a= acquire; b! acquire; a! release; b acquire; a release'],
  [BAD, 'granted before the release was sent', 'a= acquire; b! acquire; b acquire; a= release'],
  [BAD, 'released by another', 'a= acquire; b= release'],
  [BAD, 'released twice', 'a= acquire; a= release; a= release'],
  [BAD, 'acquired twice by one holder', 'a= acquire; a= acquire'],
  [GOOD, 'lost acquire that never happened', 'a! acquire; a? acquire; b= acquire'],
  [BAD, 'lost acquire whose release shows it', 'a! acquire; a? acquire; b= acquire; a= release; b= release'],
  [GOOD, 'lost release', 'a= acquire; a! release; a? release; b= acquire'],
  [GOOD, 'two locks', 'a= acquire lock=x; b= acquire lock=y'],
  [BAD, 'two holders of one of two locks', 'a= acquire lock=x; b= acquire lock=y; c= acquire lock=x'],
  [BAD, 'two holds of one process', 'a= acquire owner=h1; a= acquire owner=h2'],
  [GOOD, 'a hold that another process releases', 'a= acquire owner=h1; b= release owner=h1'],
])

table('reentrant-mutex', [
  [GOOD, 'acquired twice, released twice', 'a= acquire; a= acquire; a= release; a= release; b= acquire'],
  [BAD, 'free after one of two releases', 'a= acquire; a= acquire; a= release; b= acquire'],
  [BAD, 'released once too often', 'a= acquire; a= release; a= release'],
  [BAD, 'released by another', 'a= acquire; b= release'],
])

table('fenced-mutex', [
  [
    BAD,
    'token repeats after a lost acquire and a lost release',
    'a= acquire token=3; a= release; b! acquire; b? acquire; b! release; b? release; c= acquire token=3; c= release; b= acquire token=9; b= release',
  ],
  [
    GOOD,
    'a lost acquire and a lost release need no token',
    'a= acquire token=3; a= release; b! acquire; b? acquire; b! release; b? release; c= acquire token=4; c= release; b= acquire token=9; b= release',
  ],
  [GOOD, 'tokens grow', 'a= acquire token=3; a= release; b= acquire token=9'],
  [BAD, 'token goes back', 'a= acquire token=3; a= release; b= acquire token=2'],
  [BAD, 'token repeats', 'a= acquire token=3; a= release; b= acquire token=3'],
  [BAD, 'two holders', 'a= acquire token=3; b= acquire token=4'],
  [BAD, 'released by another', 'a= acquire token=3; b= release'],
  [BAD, 'released with another token', 'a= acquire token=3; a= release token=2'],
  [GOOD, 'tokens beyond 2^53', 'a= acquire token=9007199254740993; a= release; b= acquire token=9007199254740994'],
  [
    BAD,
    'tokens beyond 2^53 that repeat',
    'a= acquire token=9007199254740993; a= release; b= acquire token=9007199254740993',
  ],
  [
    GOOD,
    'lost acquire between two grants',
    'a= acquire token=3; a= release; b! acquire; b? acquire; b= release; c= acquire token=5',
  ],
  [
    BAD,
    'no room for the token of a lost acquire',
    'a= acquire token=3; a= release; b! acquire; b? acquire; b= release; c= acquire token=4',
  ],
  [
    BAD,
    'lost acquire whose token, told later, is too low',
    'a= acquire token=3; a= release; b! acquire; b? acquire; b= release token=3',
  ],
  [
    GOOD,
    'lost acquire whose token is told by its release',
    'a= acquire token=3; a= release; b! acquire; b? acquire; b= release token=8; c= acquire token=9',
  ],
  [
    BAD,
    'token below one that was told late',
    'a= acquire token=3; a= release; b! acquire; b? acquire; b= release token=8; c= acquire token=7',
  ],
  [
    GOOD,
    'answers of queued acquires come in any order',
    'b! acquire; a= acquire token=1; c! acquire; a= release; c acquire token=2; c= release; b acquire token=3',
  ],
])

table('rw', [
  [
    GOOD,
    'lost shared acquire keeps a generation alive',
    'a= acquire mode=shared token=4; b! acquire mode=shared; b? acquire; a= release; c= acquire mode=shared token=4',
  ],
  [GOOD, 'shared holds overlap with one token', 'a= acquire mode=shared token=1; b= acquire mode=shared token=1'],
  [BAD, 'overlapping shared holds with two tokens', 'a= acquire mode=shared token=1; b= acquire mode=shared token=2'],
  [BAD, 'exclusive during shared', 'a= acquire mode=shared token=1; b= acquire mode=exclusive token=2'],
  [BAD, 'shared during exclusive', 'a= acquire mode=exclusive token=1; b= acquire mode=shared token=2'],
  [BAD, 'shared during exclusive, without tokens', 'a= acquire mode=exclusive; b= acquire mode=shared'],
  [BAD, 'two exclusive', 'a= acquire token=1; b= acquire token=2'],
  [
    GOOD,
    'a new generation has a new token',
    'a= acquire mode=shared token=1; a= release; b= acquire mode=shared token=2',
  ],
  [
    BAD,
    'a new generation with the old token',
    'a= acquire mode=shared token=1; a= release; b= acquire mode=shared token=1',
  ],
  [
    GOOD,
    'a generation outlives its first hold',
    'a= acquire mode=shared token=1; b= acquire mode=shared token=1; a= release; c= acquire mode=shared token=1',
  ],
  [BAD, 'exclusive token not above the generation', 'a= acquire mode=shared token=5; a= release; b= acquire token=5'],
  [BAD, 'released by a stranger', 'a= acquire mode=shared token=1; b= release'],
  [BAD, 'released in the other mode', 'a= acquire mode=shared token=1; a= release mode=exclusive'],
  [
    GOOD,
    'without tokens',
    'a= acquire mode=shared; b= acquire mode=shared; a= release; b= release; c= acquire mode=exclusive',
  ],
  [
    BAD,
    'without tokens, exclusive too early',
    'a= acquire mode=shared; b= acquire mode=shared; a= release; c= acquire mode=exclusive',
  ],
  [
    GOOD,
    'lost shared acquire opens a generation',
    'a! acquire mode=shared; a? acquire; b= acquire mode=shared token=4; a= release; c= acquire mode=shared token=4',
  ],
])

table('permits', [
  [GOOD, 'as many as there are', 'a= acquire permits=2 slot=0 token=1; b= acquire permits=2 slot=1 token=2'],
  [BAD, 'one too many', 'a= acquire permits=2; b= acquire permits=2; c= acquire permits=2'],
  [BAD, 'the same slot twice', 'a= acquire permits=2 slot=0; b= acquire permits=2 slot=0'],
  [BAD, 'a slot that does not exist', 'a= acquire permits=2 slot=2'],
  [
    GOOD,
    'a slot again after its release',
    'a= acquire permits=1 slot=0; a= release slot=0; b= acquire permits=1 slot=0',
  ],
  [BAD, 'token goes back', 'a= acquire permits=2 slot=0 token=2; b= acquire permits=2 slot=1 token=1'],
  [BAD, 'token repeats', 'a= acquire permits=2 slot=0 token=2; b= acquire permits=2 slot=1 token=2'],
  [BAD, 'released by a stranger', 'a= acquire permits=2 slot=0; b= release slot=0'],
  [
    GOOD,
    'a lost acquire that its release shows in the second slot',
    'a! acquire permits=2; a? acquire; a= release slot=1; b= acquire permits=2 slot=0',
  ],
  [
    BAD,
    'a token below one that was told late',
    'a= acquire permits=2 slot=0 token=1; b! acquire permits=2; b? acquire; b= release token=8; c= acquire permits=2 slot=1 token=7',
  ],
  [BAD, 'releases the slot of another', 'a= acquire permits=2 slot=0; b= acquire permits=2 slot=1; a= release slot=1'],
  [
    GOOD,
    'one owner with two permits',
    'a= acquire permits=2 slot=0; a= acquire permits=2 slot=1; a= release; a= release; b= acquire permits=2 slot=0',
  ],
  [GOOD, 'a lost acquire that never happened', 'a! acquire permits=1; a? acquire; b= acquire permits=1'],
  [
    BAD,
    'a lost acquire that its release shows, without a slot of its own',
    'b= acquire permits=2 slot=0; a! acquire permits=2; a? acquire; b= release; c= acquire permits=2 slot=1; c= release; a= release slot=1; b= acquire permits=2 slot=0; a= release',
  ],
  [BAD, 'another size while held', 'a= acquire permits=2 slot=0; b= acquire permits=3 slot=1'],
  [GOOD, 'the size from outside', 'a= acquire; b= acquire', { permits: 2 }],
  [BAD, 'the size from outside, exceeded', 'a= acquire; b= acquire', { permits: 1 }],
])

table('kv', [
  [GOOD, 'appends', 'a= append key=x value=p; b= append key=x value=q; a= get key=x value=pq'],
  [BAD, 'lost append', 'a= append key=x value=p; b= append key=x value=q; a= get key=x value=p'],
  [GOOD, 'keys are apart', 'a= put key=x value=p; a= put key=y value=q; b= get key=x value=p; b= get key=z'],
])

describe('histories that a model cannot judge', () => {
  it.each([
    ['mutex', 'a= read', /model mutex has no operation read \(it has acquire, release\)/],
    ['fenced-mutex', 'a= acquire; a= release', /no acquire of this lock tells a token/],
    ['permits', 'a= acquire', /needs the number of permits/],
    ['register', 'a= cas value=[1]', /a cas needs a pair/],
    ['multi-register', 'a= txn value=1', /a transaction needs steps/],
  ] as const)('%s: %s', (model, lines, message) => expect(() => verdict(model, lines)).toThrow(message))
})
