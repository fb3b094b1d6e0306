import { type HistoryEvent, pairEvents } from '../event.js'
import { HistoryError, isList, isMap, type Operation, valueText } from '@leasehold/lab'
import { type EdnForm, EdnReader } from './edn.js'
import { eventOf } from './fields.js'

/**
 * Reads a history of Jepsen or Knossos: maps one after the other, or in one vector or list.
 * Also reads the key-value histories that hold one such map per line.
 * @throws HistoryError
 */
export function parseEdn(text: string): Operation[] {
  const events: HistoryEvent[] = []
  for (const { line, value } of historyForms(new EdnReader(text).elements())) {
    if (!isMap(value)) throw new HistoryError(`an event is a map, not ${valueText(value).slice(0, 60)}`, line)
    const event = eventOf(value, line)
    if (event !== undefined) events.push(event)
  }
  return pairEvents(events)
}

/** A test's result map keeps its events under `:history`. */
function historyForms(forms: readonly EdnForm[]): readonly EdnForm[] {
  const only = forms.length === 1 ? forms[0] : undefined
  const history = only !== undefined && isMap(only.value) ? only.value.get('history') : undefined
  if (only === undefined || !isList(history)) return forms
  return history.map((value) => ({ line: only.line, value }))
}
