import { type HistoryEvent, pairEvents } from '../event.js'
import { HistoryError, isList, nameOf, type Operation, type Value } from '@leasehold/lab'
import { EdnReader } from './edn.js'
import { eventOf } from './fields.js'

/** `process :type :operation value`, after whatever the logger puts in front. */
const EVENT = /(?:^|\s)(\d+|:[\w-]+)\s+:(invoke|ok|fail|info)\s+:([\w-]+)(?:\s+(.*))?$/
/** A line that wants to be an event: a process and the start of a type, written by the logger of operations. */
const BROKEN = /jepsen\.util\b.*?[-:]\s+\d+(?:\s|$)|(?:^|\s)\d+\s+:(?:invoke|ok|fail|info)\b/

/**
 * Reads the log that Jepsen's etcd test printed: `INFO jepsen.util - 3 :invoke :write 4`.
 * `:timed-out` in place of a value is a lost answer. A cas that failed with its pair is an observation: the register had
 * another value. Lines of other loggers are left out.
 * @throws HistoryError
 */
export function parseLog(text: string): Operation[] {
  const events: HistoryEvent[] = []
  let firstText: number | undefined
  for (const [index, raw] of text.split('\n').entries()) {
    const line = index + 1
    const trimmed = raw.replace(/^\uFEFF/, '').trim()
    if (trimmed === '') continue
    firstText ??= line
    const match = EVENT.exec(trimmed)
    if (match === null) {
      if (BROKEN.test(trimmed)) throw new HistoryError(`not an event: ${trimmed.slice(0, 80)}`, line)
      continue
    }
    const [, process = '', type = '', op = '', rest = ''] = match
    const event = eventOf(fieldsOf({ process, type, op, value: valueOf(rest, line) }), line)
    if (event !== undefined) events.push(event)
  }
  if (events.length === 0 && firstText !== undefined) throw new HistoryError('no event in the whole log', firstText)
  return pairEvents(events)
}

function fieldsOf({ process, type, op, value }: { process: string; type: string; op: string; value: Value }) {
  const isTimeOut = typeof value === 'string' && /^:(timed-?out|timeout)$/.test(value)
  if (type === 'fail' && op === 'cas' && isList(value)) {
    return new Map<string, Value>([
      ['process', process],
      ['type', 'ok'],
      ['op', op],
      ['result', false],
    ])
  }
  return new Map<string, Value>([
    ['process', process],
    ['type', isTimeOut && type !== 'fail' ? 'info' : type],
    ['op', nameOf(op) ?? op],
    ['value', isTimeOut ? null : value],
  ])
}

function valueOf(rest: string, line: number): Value {
  return new EdnReader(rest, line).next()?.value ?? null
}
