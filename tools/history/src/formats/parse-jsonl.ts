import { type HistoryEvent, pairEvents } from '../event.js'
import { HistoryError, isMap, type Operation, toValue, type Value } from '@leasehold/lab'
import { eventOf } from './fields.js'

/**
 * Reads our own format, one JSON object per line in order of time; see docs/internals/histories.md. Empty lines and lines that begin
 * with `#` or `//` are left out.
 * @throws HistoryError
 */
export function parseJsonl(text: string): Operation[] {
  const events: HistoryEvent[] = []
  for (const [index, raw] of text.split('\n').entries()) {
    const trimmed = raw.replace(/^\uFEFF/, '').trim()
    if (trimmed === '' || trimmed.startsWith('#') || trimmed.startsWith('//')) continue
    const line = index + 1
    const value = parseLine(trimmed, line)
    if (!isMap(value)) throw new HistoryError('an event is a JSON object', line)
    const event = eventOf(value, line)
    if (event !== undefined) events.push(event)
  }
  return pairEvents(events)
}

function parseLine(text: string, line: number): Value {
  try {
    return toValue(JSON.parse(text))
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new HistoryError(error instanceof RangeError ? message : `not JSON: ${message}`, line)
  }
}
