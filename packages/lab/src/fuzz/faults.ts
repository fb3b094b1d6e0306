import type { EffectName } from '../cluster/simulated-member.js'
import type { BitrotTarget } from '../cluster/bitrot.js'

/**
 * A fault of a schedule, as data. `target` is a machine (`N2`, `C1`), or `leader`: who leads when it happens, or
 * `holder`: the client that works on a counter then. Times are in milliseconds of true time; `forMs` later it is over, and
 * what has died is started again.
 */
export type Fault = { readonly atMs: number; readonly forMs: number } & (
  | { readonly kind: 'power' | 'kill' | 'pause' | 'suspend' | 'isolate'; readonly target: string }
  /** Dies right at its `nth` effect from now on: a write, the end of one, a message, an answer; `what`: of these only. */
  | { readonly kind: 'effect'; readonly target: string; readonly nth: number; readonly what?: EffectName }
  /**
   * Only its process dies, right at its `nth` effect of this name: between a write and its sync, or a change of the folder and
   * that of the folder. It starts again `restartMs` later (and dies at the `againNth` effect of its start, and starts
   * again, if that is given), reads what is not synced, and loses power `powerAfterMs` after its start.
   */
  | {
      readonly kind: 'killUnsynced'
      readonly target: string
      readonly nth: number
      readonly what: EffectName
      readonly restartMs: number
      readonly againNth?: number
      readonly powerAfterMs: number
    }
  /** All members at once. */
  | { readonly kind: 'blackout' }
  | { readonly kind: 'cut' | 'oneWay' | 'clog' | 'reset' | 'forget'; readonly from: string; readonly to: string }
  | { readonly kind: 'split'; readonly left: readonly string[]; readonly right: readonly string[] }
  | { readonly kind: 'ring'; readonly names: readonly string[] }
  /** All links are bad. */
  | { readonly kind: 'weather'; readonly profile: Weather }
  | { readonly kind: 'slowDisk'; readonly target: string; readonly syncMs: number }
  | { readonly kind: 'stuckDisk' | 'readOnlyDisk'; readonly target: string }
  /** After `room` more bytes; default: at once. */
  | { readonly kind: 'fullDisk'; readonly target: string; readonly room?: number }
  | { readonly kind: 'failSync' | 'failWrite'; readonly target: string }
  /** The power goes, and what is on the disk has changed when it comes back. */
  | { readonly kind: 'rot'; readonly target: string; readonly file: BitrotTarget }
  | { readonly kind: 'misdirect'; readonly target: string }
  /** At its end the member is started on a copy of its disk that was made at its beginning, if all others remember more. */
  | { readonly kind: 'setBack'; readonly target: string }
  /** The disk is replaced by an empty one, and the member by a new one of the same name. */
  | { readonly kind: 'replace'; readonly target: string }
  /** The data folder is removed under the member. `forMs` later it is replaced, as with `replace`. */
  | { readonly kind: 'removeFolder'; readonly target: string }
  | { readonly kind: 'stepWall'; readonly target: string; readonly byMs: number }
  | { readonly kind: 'drift'; readonly target: string; readonly ppm: number }
  | { readonly kind: 'transfer'; readonly target: string }
  /** An operator ends one of the holds. */
  | { readonly kind: 'steal' }
)

export interface Weather {
  readonly lossPpm: number
  readonly duplicatePpm: number
  readonly tailUs: number
  readonly reorderPpm: number
  readonly corruptPpm: number
}

export type FaultKind = Fault['kind']

/** Faults by what they have in common: a seed switches whole families on and off, and so does shrinking. */
export const FAMILIES = {
  crashes: ['power', 'kill', 'blackout'],
  boundaries: ['effect', 'killUnsynced'],
  pauses: ['pause', 'suspend'],
  partitions: ['isolate', 'cut', 'oneWay', 'split', 'ring'],
  links: ['clog', 'reset', 'forget', 'weather'],
  slowDisks: ['slowDisk', 'stuckDisk'],
  brokenDisks: ['failSync', 'failWrite', 'readOnlyDisk', 'fullDisk'],
  damage: ['rot', 'misdirect'],
  rollbacks: ['setBack'],
  membership: ['replace'],
  clocks: ['stepWall', 'drift'],
  operators: ['transfer', 'steal'],
  folders: ['removeFolder'],
} as const satisfies Record<string, readonly FaultKind[]>

export type Family = keyof typeof FAMILIES

export function familyOf(kind: FaultKind): Family {
  for (const [family, kinds] of Object.entries(FAMILIES)) {
    if ((kinds as readonly FaultKind[]).includes(kind)) return family as Family
  }
  throw new Error(`no family has ${kind}`)
}

/** One line for people. */
export function faultText(fault: Fault): string {
  const { kind, atMs, forMs, ...rest } = fault
  const words = Object.entries(rest).map(
    ([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`,
  )
  return `${(atMs / 1000).toFixed(3)} s: ${kind}${words.length > 0 ? ` ${words.join(', ')}` : ''}${forMs > 0 ? ` for ${forMs} ms` : ''}`
}
