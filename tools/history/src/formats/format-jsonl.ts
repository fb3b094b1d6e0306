import type { HistoryEvent } from '../event.js'
import { isList, isMap, type Value } from '@leasehold/lab'

/** Writes events in our own format, one line each; {@link parseJsonl} reads them back. */
export function formatJsonl(events: readonly HistoryEvent[]): string {
  return events.map((event) => `${JSON.stringify(plainEvent(event))}\n`).join('')
}

function plainEvent({ line: _line, token, value, result, ...rest }: HistoryEvent): Record<string, unknown> {
  return {
    ...rest,
    ...(token === undefined ? {} : { token: token.toString() }),
    ...(value === undefined ? {} : { value: plain(value) }),
    ...(result === undefined ? {} : { result: plain(result) }),
  }
}

function plain(value: Value): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (isList(value)) return value.map(plain)
  return isMap(value) ? Object.fromEntries([...value].map(([name, item]) => [name, plain(item)])) : value
}
