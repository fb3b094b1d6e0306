import type { Millis } from './brand.js'
import { InvalidError } from './errors.js'

/** A number of milliseconds, or text such as `'250ms'`, `'10s'`, `'5m'`, `'2h'`, `'1d'`. */
export type Duration = number | string

const HINT = "write '250ms', '10s', '5m', '2h' or '1d'"

const UNITS_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Parses a duration into whole milliseconds. `Infinity` is accepted only with `infinite`.
 * With `noSmallNumbers` (`ttl` and `wait`), a bare number from 1 to 999 is rejected: 30 almost always means seconds.
 * @throws InvalidError
 */
export function parseDuration(
  value: Duration,
  what: string,
  options: { infinite?: boolean; noSmallNumbers?: boolean } = {},
): Millis {
  if (typeof value === 'number') {
    if (value === Number.POSITIVE_INFINITY && options.infinite) return value as Millis
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new InvalidError(`${what} is a whole number of milliseconds, not ${value}`, { hint: HINT })
    }
    if (options.noSmallNumbers && value > 0 && value < 1000) {
      throw new InvalidError(`${what}: ${value} is ambiguous`, {
        hint: `${value} means ${value} ms; write '${value}s' or '${value}ms'`,
      })
    }
    return value as Millis
  }
  if (typeof value !== 'string') {
    throw new InvalidError(`${what} is a duration such as '10s', not a ${typeof value}`, { hint: HINT })
  }
  const match = /^(\d{1,15}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(value.trim())
  const ms = match ? Math.round(Number(match[1]) * (UNITS_MS[match[2] as string] as number)) : Number.NaN
  if (!Number.isSafeInteger(ms)) {
    const bare = /^\d{1,15}$/.exec(value.trim())?.[0]
    throw new InvalidError(`${what}: not a duration: ${JSON.stringify(value.slice(0, 40))}`, {
      hint: bare === undefined ? HINT : `${bare} has no unit; write '${bare}s' or '${bare}ms'`,
    })
  }
  return ms as Millis
}
