import type { Model, ModelOptions } from '../model.js'
import type { Operation } from '../operation.js'
import { isList, nameOf, type Value, valueText } from '../value.js'

/** Registers by name, each with the canonical text of its value. */
type Registers = ReadonlyMap<string, string>

/**
 * Several registers that are read and written in one transaction: `[[:read :x 1] [:write :y 2]]`.
 * A register whose first value is not recorded takes the value that its first read saw. A read of nil says nothing.
 */
export function multiRegisterModel(options: ModelOptions = {}): Model<Registers> {
  return {
    name: 'multi-register',
    operations: { txn: 'txn', read: 'txn', write: 'txn' },
    partition: () => '',
    init: () => new Map(),
    step: (state, operation) => stepTransaction(state, operation, options.initial),
    stateText: (state) => [...state].map(([name, value]) => `${name}=${value}`).join(' '),
    describe: (operation) => `txn ${valueText(stepsOf(operation))}${operation.outcome === 'ok' ? '' : ' ?'}`,
    isReadOnly: (operation) => (steps(operation) ?? []).every(([action]) => action === 'read'),
    problem: (operation) =>
      steps(operation) === undefined
        ? `a transaction needs steps like [[:read :x nil]], not ${valueText(operation.value)}`
        : undefined,
  }
}

function stepTransaction(state: Registers, operation: Operation, initial: Value | undefined): readonly Registers[] {
  const next = new Map(state)
  for (const [action, register, value] of steps(operation) ?? []) {
    if (action === 'write') {
      next.set(register, valueText(value))
    } else if (operation.outcome === 'ok' && value !== null) {
      const text = valueText(value)
      const before = next.get(register) ?? (initial === undefined ? text : valueText(initial))
      if (before !== text) return []
      next.set(register, text)
    }
  }
  return [new Map([...next].sort(([a], [b]) => (a < b ? -1 : 1)))]
}

/** An acknowledged transaction repeats its steps with what its reads saw. */
function stepsOf(operation: Operation): Value | undefined {
  return operation.outcome === 'ok' && isList(operation.result) ? operation.result : operation.value
}

function steps(operation: Operation): [action: 'read' | 'write', register: string, value: Value][] | undefined {
  const list = stepsOf(operation)
  if (!isList(list)) return undefined
  const all: ['read' | 'write', string, Value][] = []
  for (const step of list) {
    if (!isList(step) || step.length < 2) return undefined
    const action = { read: 'read', r: 'read', write: 'write', w: 'write' }[nameOf(step[0]) ?? ''] as
      | 'read'
      | 'write'
      | undefined
    if (action === undefined) return undefined
    all.push([action, valueText(step[1]), step[2] ?? null])
  }
  return all
}
