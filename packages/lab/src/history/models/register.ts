import type { Model, ModelOptions } from '../model.js'
import type { Operation } from '../operation.js'
import { isList, type Value, valueText } from '../value.js'

/**
 * A register with read, write and compare-and-set; the state is the canonical text of its value.
 * A cas with the answer `false` saw another value than it asked for.
 */
export function registerModel(options: ModelOptions = {}): Model<string> {
  return {
    name: 'register',
    operations: { read: 'read', get: 'read', write: 'write', put: 'write', set: 'write', cas: 'cas' },
    partition: (operation) => operation.key,
    init: () => valueText(options.initial),
    step: stepRegister,
    stateText: (state) => state,
    describe: describeRegister,
    isReadOnly: (operation) => operation.op === 'read' || operation.result === false,
    relevant: withoutUnseenWrites,
    problem: (operation) =>
      operation.op === 'cas' && casPair(operation.value) === undefined
        ? `a cas needs a pair [from to], not ${valueText(operation.value)}`
        : undefined,
  }
}

function stepRegister(state: string, operation: Operation): readonly string[] {
  if (operation.op === 'write') return [valueText(operation.value)]
  if (operation.op === 'read') {
    return operation.outcome === 'unknown' || valueText(operation.result) === state ? [state] : []
  }
  const [from, to] = casPair(operation.value) ?? []
  const matches = valueText(from) === state
  if (operation.result === false) return matches ? [] : [state]
  return matches ? [valueText(to)] : []
}

/**
 * A lost write of a value that no read returned and no cas asked for need not have happened; a cas that found another value than
 * it asked for may have found it, whatever it was.
 */
function withoutUnseenWrites(operations: readonly Operation[]): readonly Operation[] {
  if (operations.some(({ result }) => result === false)) return operations
  const seen = new Set<string>()
  for (const operation of operations) {
    if (operation.op === 'read') seen.add(valueText(operation.result))
    if (operation.op === 'cas') seen.add(valueText(casPair(operation.value)?.[0]))
  }
  return operations.filter(
    ({ op, outcome, value }) =>
      op === 'read' || outcome === 'ok' || seen.has(valueText(op === 'cas' ? casPair(value)?.[1] : value)),
  )
}

function describeRegister(operation: Operation): string {
  if (operation.op === 'read') return operation.outcome === 'ok' ? `read → ${valueText(operation.result)}` : 'read'
  if (operation.op === 'write') return `write ${valueText(operation.value)}`
  const [from, to] = casPair(operation.value) ?? []
  const answer = operation.result === false ? ' → another value' : ''
  return `cas ${valueText(from)} to ${valueText(to)}${answer}`
}

function casPair(value: Value | undefined): readonly [Value, Value] | undefined {
  if (!isList(value) || value.length !== 2) return undefined
  return [value[0] as Value, value[1] as Value]
}
