import type { Fault, FaultKind, FaultOf, Scheduled } from '../faults/fault.js'

/** A fault that the fuzzer draws, in the form that its plans store. Cuts are between two machines. */
export type DrawnFault = Scheduled<Exclude<FaultOf<DrawnKind>, { readonly kind: 'cut' | 'oneWay' }> | PairwiseCut>

interface PairwiseCut {
  readonly kind: 'cut' | 'oneWay'
  readonly from: string
  readonly to: string
}

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
export type DrawnKind = (typeof FAMILIES)[Family][number]

export function familyOf(kind: DrawnKind): Family {
  for (const [family, kinds] of Object.entries(FAMILIES)) {
    if ((kinds as readonly FaultKind[]).includes(kind)) return family as Family
  }
  throw new Error(`no family has ${kind}`)
}

/** One line for people. */
export function faultText(fault: Scheduled<Fault>): string {
  const { kind, atMs, forMs, ...rest } = fault
  const words = Object.entries(rest).map(
    ([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`,
  )
  return `${(atMs / 1000).toFixed(3)} s: ${kind}${words.length > 0 ? ` ${words.join(', ')}` : ''}${forMs > 0 ? ` for ${forMs} ms` : ''}`
}
