import type { Serial } from './brand.js'

/** 2024-01-01T00:00:00Z, from which floors are counted. */
export const FLOOR_ORIGIN_MS = 1_704_067_200_000
/** Counter values per millisecond: a service may grant this many on average and still stay below the floor of a later start. */
export const FLOOR_PER_MS = 128
/** 2026-11-01T00:00:00Z. A clock before the first release that knows floors is wrong. */
export const FLOOR_CLOCK_MIN_MS = 1_793_491_200_000
/** 2058-01-01T00:00:00Z. A clock after it is taken for wrong: its floor would use up half of the counter. */
export const FLOOR_CLOCK_MAX_MS = 2_777_068_800_000
/** No floor is higher. */
export const FLOOR_MAX = ((FLOOR_CLOCK_MAX_MS - FLOOR_ORIGIN_MS) * FLOOR_PER_MS) as Serial

/**
 * The lowest counter value that a service which starts at `wallMs` (milliseconds since 1970) may grant: above everything
 * that a lost service granted earlier, as long as clocks differ by less than the outage and the grants since the last floor
 * averaged under {@link FLOOR_PER_MS} per millisecond. Undefined when the clock is implausible: before the first release
 * that knows floors, or after 2057.
 */
export function floorAt(wallMs: number): Serial | undefined {
  if (!(wallMs >= FLOOR_CLOCK_MIN_MS && wallMs < FLOOR_CLOCK_MAX_MS)) return undefined
  return (Math.floor(wallMs - FLOOR_ORIGIN_MS) * FLOOR_PER_MS) as Serial
}
