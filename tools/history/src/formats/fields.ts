import type { EventType, HistoryEvent } from '../event.js'
import { HistoryError, type HoldMode, isMap, nameOf, type Value, valueText } from '@leasehold/lab'

/** The fields of one event by name, as a format's reader found them. */
export type Fields = ReadonlyMap<string, Value>

const TYPES: Readonly<Record<string, EventType>> = {
  invoke: 'invoke',
  ok: 'ok',
  fail: 'fail',
  info: 'info',
}
const MAX_TOKEN = 2n ** 64n

/**
 * The event that the fields describe, or undefined for one that is no operation of a client (a fault that was injected, a note).
 * @throws HistoryError
 */
export function eventOf(fields: Fields, line: number): HistoryEvent | undefined {
  const typeName = nameOf(fields.get('type'))
  const process = nameOf(fields.get('process'))
  if (process === undefined ? typeName === 'info' : process.startsWith('nemesis')) return undefined
  if (process === undefined) throw new HistoryError('an event without a process', line)
  const type = typeName !== undefined && Object.hasOwn(TYPES, typeName) ? TYPES[typeName] : undefined
  if (type === undefined) {
    throw new HistoryError(
      `the type of an event is invoke, ok, fail or info, not ${valueText(fields.get('type'))}`,
      line,
    )
  }
  const op = nameOf(first(fields, 'op', 'f'))
  if (op === undefined && type === 'invoke') throw new HistoryError('an invocation without an operation', line)
  return { process, type, op, line, ...details(fields, line) }
}

function details(fields: Fields, line: number): Omit<HistoryEvent, 'process' | 'type' | 'op' | 'line'> {
  const value = fields.get('value')
  // A lock's history may keep its details in the value: a map, or only the mode.
  const inner = isMap(value) ? value : undefined
  const field = (...names: string[]) =>
    first(fields, ...names) ?? (inner === undefined ? undefined : first(inner, ...names))
  const mode = modeOf(field('mode')) ?? modeOf(value)
  if (field('mode') !== undefined && mode === undefined) {
    throw new HistoryError(`a mode is exclusive or shared, not ${valueText(field('mode'))}`, line)
  }
  return {
    key: textOf(first(fields, 'key', 'lock', 'register')),
    id: textOf(first(fields, 'id')),
    owner: textOf(field('owner', 'client', 'session', 'hold')),
    mode,
    token: tokenOf(field('token', 'fence'), line),
    slot: countOf('slot', field('slot'), line),
    permits: countOf('permits', field('permits'), line),
    value: value === null ? undefined : value,
    result: fields.get('result'),
  }
}

function first(fields: Fields, ...names: string[]): Value | undefined {
  for (const name of names) {
    const value = fields.get(name)
    if (value !== undefined && value !== null) return value
  }
  return undefined
}

function textOf(value: Value | undefined): string | undefined {
  if (value === undefined) return undefined
  return typeof value === 'string' ? value : valueText(value)
}

function modeOf(value: Value | undefined): HoldMode | undefined {
  const name = typeof value === 'string' ? nameOf(value) : undefined
  if (name === 'shared' || name === 'read') return 'shared'
  return name === 'exclusive' || name === 'write' ? 'exclusive' : undefined
}

/** Decimal text, or a number that JavaScript can hold exactly. What is not positive stands for no token. */
function tokenOf(value: Value | undefined, line: number): bigint | undefined {
  if (value === undefined) return undefined
  const isExact = typeof value === 'number' ? Number.isSafeInteger(value) : typeof value === 'bigint'
  if (!isExact && !(typeof value === 'string' && /^\d{1,20}$/.test(value))) {
    throw new HistoryError(`a token is an integer as decimal text or a safe number, not ${valueText(value)}`, line)
  }
  const token = BigInt(value as string | number | bigint)
  if (token >= MAX_TOKEN) throw new HistoryError(`a token is below 2^64, not ${token}`, line)
  return token > 0n ? token : undefined
}

function countOf(name: string, value: Value | undefined, line: number): number | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new HistoryError(`${name} is a whole number from 0, not ${valueText(value)}`, line)
  }
  return value
}
