import type { DiskTroubleSpec, ScenarioFault } from '../scenario-fault.js'

/** Options and steps that the cases of disks share. */

/** Records of many sectors: of each, a crash may leave any part, and log files come to their end. */
export const large = (count: number, from = 0) =>
  [
    { do: 'wait', until: from },
    { do: 'client', action: 'loop', lock: 'large', count, hold: 0.005, data: 4000 },
  ] as const
/** A disk is in trouble from `at` on. */
export function trouble(
  at: number,
  what: DiskTroubleSpec['trouble'],
  who: string,
  more: { readonly for?: number; readonly ms?: number; readonly room?: number } = {},
): ScenarioFault {
  return { at, do: 'system', action: 'disk', trouble: what, who, ...more }
}

/** Whatever was not synced is lost. */
export const HARSH = { loss: 1000, kept: 0 }
export const TORN = { loss: 500, kept: 500 }
export const SMALL = { snapshotBytes: 4096 }
/** A member is removed and added again with an empty disk, as its error says. */
export const replaced = (from: number, who: string) =>
  [
    { at: from, do: 'system', action: 'replaceDisk', who },
    { at: from + 1, do: 'system', action: 'remove', who },
    { at: from + 2, do: 'system', action: 'add', who },
    { at: from + 6, do: 'system', action: 'promote', who },
  ] as const
