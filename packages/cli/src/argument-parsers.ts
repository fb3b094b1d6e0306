import { InvalidArgumentError } from 'commander'

/** Returns a commander parser for whole numbers in a range. Its error names `what`. */
export function numberOf(what: string, min: number, max: number = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(
      `${what} is a whole number${max < Number.MAX_SAFE_INTEGER ? ` from ${min} to ${max}` : `, at least ${min}`}.`,
    )
  }
}

/** Parses the version of a register. */
export function versionOf(text: string): bigint {
  if (/^\d{1,19}$/.test(text)) return BigInt(text)
  throw new InvalidArgumentError('a version is a decimal number; 0 means that the register must not exist.')
}
