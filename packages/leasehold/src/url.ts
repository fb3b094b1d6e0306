import { DEFAULT_URL } from '@leasehold/core'

export { DEFAULT_URL }

/** The URL used when none is given: `LEASEHOLD_URL`, as `leasehold run` sets it, or the default. */
export function defaultUrl(): string {
  return process.env.LEASEHOLD_URL ?? DEFAULT_URL
}
