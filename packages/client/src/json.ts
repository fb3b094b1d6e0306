/** What `JSON.stringify` can write. `toJSON` is not enumerable: a copy with `{ ...value }` does not have it. */
export interface Jsonable {
  /** Ids, tokens and versions as decimal text, bytes as base64. */
  toJSON(): Record<string, unknown>
}

/** Adds `toJSON` to an object that may contain bigints and bytes. */
export function jsonable<T extends object>(
  value: T,
  toJSON: () => Record<string, unknown> = () => plainOf(value) as Record<string, unknown>,
): T & Jsonable {
  return Object.defineProperty(value, 'toJSON', { value: toJSON }) as T & Jsonable
}

export function base64Of(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}

function plainOf(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Uint8Array) return base64Of(value)
  if (Array.isArray(value)) return value.map(plainOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plainOf(one)]))
}
