/** Where a service listens when nobody says otherwise. */
export const DEFAULT_URL = 'http://127.0.0.1:4100'

/** The URL that is meant when none is given: that of the environment, as `leasehold run` sets it, or the default. */
export function defaultUrl(): string {
  return process.env.LEASEHOLD_URL ?? DEFAULT_URL
}
