import type { Serial } from './brand.js'

/** 2024-01-01T00:00:00Z, from which floors are counted. */
export const FLOOR_ORIGIN_MS = 1_704_067_200_000
/** Counter values per millisecond: a service that grants fewer on average stays below the floor of a later start. */
export const FLOOR_PER_MS = 128
/** 2026-11-01T00:00:00Z. An earlier clock is wrong: it is before the first release that has floors. */
export const FLOOR_CLOCK_MIN_MS = 1_793_491_200_000
/** 2058-01-01T00:00:00Z. A later clock counts as wrong: its floor would use up half of the counter. */
export const FLOOR_CLOCK_MAX_MS = 2_777_068_800_000
/** The highest floor. */
export const FLOOR_MAX = ((FLOOR_CLOCK_MAX_MS - FLOOR_ORIGIN_MS) * FLOOR_PER_MS) as Serial

/**
 * Returns the lowest counter value that a service started at `wallMs` (milliseconds since 1970) may grant. It is above every
 * value of a lost earlier service, provided that the clocks differ by less than the outage and that grants since the last
 * floor averaged under {@link FLOOR_PER_MS} per millisecond. Returns undefined for an implausible clock: before the first
 * release that has floors, or after 2057.
 */
export function floorAt(wallMs: number): Serial | undefined {
  if (!(wallMs >= FLOOR_CLOCK_MIN_MS && wallMs < FLOOR_CLOCK_MAX_MS)) return undefined
  return (Math.floor(wallMs - FLOOR_ORIGIN_MS) * FLOOR_PER_MS) as Serial
}
