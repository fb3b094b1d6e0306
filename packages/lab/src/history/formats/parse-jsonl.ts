import { type HistoryEvent, pairEvents } from '../event.js'
import { HistoryError } from '../history-error.js'
import type { Operation } from '../operation.js'
import { isMap, type Value } from '../value.js'
import { eventOf } from './fields.js'

/**
 * Reads our own format, one JSON object per line in order of time; see docs/histories.md. Empty lines and lines that begin
 * with `#` or `//` are left out.
 * @throws HistoryError
 */
export function parseJsonl(text: string): Operation[] {
  const events: HistoryEvent[] = []
  for (const [index, raw] of text.split('\n').entries()) {
    const trimmed = raw.replace(/^\uFEFF/, '').trim()
    if (trimmed === '' || trimmed.startsWith('#') || trimmed.startsWith('//')) continue
    const line = index + 1
    const value = jsonValue(parseLine(trimmed, line), line)
    if (!isMap(value)) throw new HistoryError('an event is a JSON object', line)
    const event = eventOf(value, line)
    if (event !== undefined) events.push(event)
  }
  return pairEvents(events)
}

function parseLine(text: string, line: number): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new HistoryError(`not JSON: ${error instanceof Error ? error.message : String(error)}`, line)
  }
}

function jsonValue(value: unknown, line: number): Value {
  if (Array.isArray(value)) return value.map((item) => jsonValue(item, line))
  if (typeof value === 'object' && value !== null) {
    return new Map(Object.entries(value).map(([name, item]) => [name, jsonValue(item, line)]))
  }
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new HistoryError(`${value} has lost digits: write integers beyond 2^53 as text`, line)
  }
  return value as Value
}
