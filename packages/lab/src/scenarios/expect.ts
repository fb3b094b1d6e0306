import type { Expectation, Observation } from './format.js'

/** Where an observation is not as expected; only the parts that the expectation names count. */
export function differences(expected: Expectation, observed: Observation): string[] {
  return compare('', expected, observed)
}

function compare(path: string, expected: unknown, observed: unknown): string[] {
  if (isRange(expected)) {
    const { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY } = expected
    const isWithin = typeof observed === 'number' && observed >= atLeast && observed <= atMost
    return isWithin ? [] : [difference(path, expected, observed)]
  }
  if (isPart(expected)) {
    const has = typeof observed === 'string' && observed.includes(expected.contains)
    return has ? [] : [difference(path, expected, observed)]
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(observed) || observed.length !== expected.length) return [difference(path, expected, observed)]
    return expected.flatMap((part, i) => compare(`${path}[${i}]`, part, observed[i]))
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof observed !== 'object' || observed === null) return [difference(path, expected, observed)]
    return Object.entries(expected).flatMap(([key, part]) =>
      compare(path === '' ? key : `${path}.${key}`, part, (observed as Record<string, unknown>)[key]),
    )
  }
  return expected === observed ? [] : [difference(path, expected, observed)]
}

function isRange(value: unknown): value is { readonly atLeast?: number; readonly atMost?: number } {
  if (typeof value !== 'object' || value === null) return false
  const keys = Object.keys(value)
  return keys.length > 0 && keys.every((key) => key === 'atLeast' || key === 'atMost')
}

function isPart(value: unknown): value is { readonly contains: string } {
  if (typeof value !== 'object' || value === null) return false
  return Object.keys(value).join() === 'contains' && typeof (value as { contains: unknown }).contains === 'string'
}

function difference(path: string, expected: unknown, observed: unknown): string {
  return `${path}: expected ${JSON.stringify(expected)}, observed ${JSON.stringify(observed)}`
}
