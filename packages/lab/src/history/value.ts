/** A value inside a history: what JSON and EDN can say. EDN keywords keep their colon (`":x"`). */
export type Value = null | boolean | number | bigint | string | readonly Value[] | ReadonlyMap<string, Value>

/**
 * The canonical text of a value: two values are equal exactly if their texts are. Maps are written in key order.
 *
 * @example valueText([1, null, 'a']) // '[1 nil "a"]'
 */
export function valueText(value: Value | undefined): string {
  if (value === undefined || value === null) return 'nil'
  if (typeof value === 'string') return value.startsWith(':') && isKeyword(value) ? value : JSON.stringify(value)
  if (typeof value !== 'object') return String(value)
  if (isList(value)) return `[${value.map(valueText).join(' ')}]`
  const pairs = [...value].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${pairs.map(([key, item]) => `${key} ${valueText(item)}`).join(', ')}}`
}

/** Whether a value is a vector. */
export function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value)
}

/** Whether a value is a map. */
export function isMap(value: Value | undefined): value is ReadonlyMap<string, Value> {
  return value instanceof Map
}

/** A name written as a keyword (`:read`) or as text (`"read"`), without the colon. */
export function nameOf(value: Value | undefined): string | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  if (typeof value !== 'string') return undefined
  return value.startsWith(':') ? value.slice(1) : value
}

function isKeyword(text: string): boolean {
  return /^:[^\s"()[\]{},;]+$/.test(text)
}

/** What `JSON.parse` gave, as a value. Integers that have lost digits are refused by a {@link RangeError}. */
export function toValue(json: unknown): Value {
  if (Array.isArray(json)) return json.map(toValue)
  if (typeof json === 'object' && json !== null) {
    return new Map(Object.entries(json).map(([name, item]) => [name, toValue(item)]))
  }
  if (typeof json === 'number' && Number.isInteger(json) && !Number.isSafeInteger(json)) {
    throw new RangeError(`${json} has lost digits: write integers beyond 2^53 as text`)
  }
  return json as Value
}
