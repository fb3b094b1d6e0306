import type { Model } from '../model.js'
import type { Operation } from '../operation.js'
import { valueText } from '../value.js'

/** A store of texts with get, put and append, one object per key. A missing key reads as the empty text. */
export function kvModel(): Model<string> {
  return {
    name: 'kv',
    operations: { get: 'get', read: 'get', put: 'put', write: 'put', set: 'put', append: 'append' },
    partition: (operation) => operation.key,
    init: () => '',
    step: stepKv,
    stateText: (state) => state,
    describe: describeKv,
    isReadOnly: (operation) => operation.op === 'get',
    problem: () => undefined,
  }
}

function stepKv(state: string, operation: Operation): readonly string[] {
  if (operation.op === 'put') return [textOf(operation.value)]
  if (operation.op === 'append') return [state + textOf(operation.value)]
  return operation.outcome === 'unknown' || textOf(operation.result) === state ? [state] : []
}

function describeKv(operation: Operation): string {
  if (operation.op !== 'get') return `${operation.op} ${JSON.stringify(textOf(operation.value))}`
  return operation.outcome === 'ok' ? `get → ${JSON.stringify(textOf(operation.result))}` : 'get'
}

function textOf(value: Operation['value']): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : valueText(value)
}
