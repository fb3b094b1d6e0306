import type { EffectName } from '../cluster/simulated-member.js'
import type { BitrotTarget } from '../cluster/bitrot.js'
import type { ClockName } from '../world/index.js'

/**
 * The faults that scenarios, the fuzzer, the page and the chaos run share. Each fault is plain data, and all times in it are
 * milliseconds. When a fault begins and how long it lasts is up to the schedule; see {@link Scheduled}. `target` is a
 * machine (`N2`, `C1`) or a role that its user resolves, such as `leader`.
 */
export type Fault = ProcessFault | NetworkFault | ClockFault | DiskFault | OperatorFault

export type ProcessFault =
  /** The machine loses power: all its processes end, and disks lose what is not synced. */
  | { readonly kind: 'power'; readonly target: string }
  /** The processes are killed: what they wrote can still be read. */
  | { readonly kind: 'kill'; readonly target: string }
  /** The processes stand still and every clock runs. With `forMs` they resume by themselves. */
  | { readonly kind: 'pause'; readonly target: string; readonly forMs?: number }
  /** Like a pause, and the monotonic clock stands still as well. With `forMs` the machine wakes by itself. */
  | { readonly kind: 'suspend'; readonly target: string; readonly forMs?: number }
  /** The process is asked to stop, and started again. */
  | { readonly kind: 'restart'; readonly target: string }
  /** All members lose power at once. */
  | { readonly kind: 'blackout' }
  /** All members are killed at once. */
  | { readonly kind: 'killAll' }
  /** The power goes right at the `nth` effect from now on: a write, its end, a message, an answer; `what`: of these only. */
  | { readonly kind: 'effect'; readonly target: string; readonly nth: number; readonly what?: EffectName }
  /**
   * The process is killed right at its `nth` effect of this name: between a write and its sync, or between a change of the folder
   * and the sync of the folder. It starts again `restartMs` later, reads what is not synced, and loses power `powerAfterMs`
   * after its start. With `againNth` it is killed once more, at that effect of its start.
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
  /** The process is killed right after it has acknowledged a hold. */
  | { readonly kind: 'killAfterAck'; readonly target: string }

export type NetworkFault =
  /** No messages between any of `from` and any of `to`. */
  | { readonly kind: 'cut'; readonly from: Names; readonly to: Names }
  /** No messages from any of `from` to any of `to`. */
  | { readonly kind: 'oneWay'; readonly from: Names; readonly to: Names }
  | { readonly kind: 'isolate'; readonly target: string }
  /** Messages wait, and arrive in their order afterwards. */
  | { readonly kind: 'clog'; readonly from: string; readonly to: string }
  /** The next `count` messages whose label contains `label` are delayed. */
  | {
      readonly kind: 'hold'
      readonly from: string
      readonly to: string
      readonly delayMs: number
      readonly count?: number
      readonly label?: string
    }
  /** Connections break, and both sides are told. */
  | { readonly kind: 'reset'; readonly from: string; readonly to: string }
  /** A middlebox forgets the connections: nothing arrives on them any more, and neither side is told. */
  | { readonly kind: 'forget'; readonly from: string; readonly to: string }
  /** Links are slow or lossy. */
  | {
      readonly kind: 'link'
      readonly from: Names
      readonly to: Names
      readonly delayMs?: number
      readonly lossPpm?: number
    }
  | { readonly kind: 'split'; readonly left: readonly string[]; readonly right: readonly string[] }
  /** Each one sees its neighbours only. */
  | { readonly kind: 'ring'; readonly names: readonly string[] }
  /** All links are bad. */
  | { readonly kind: 'weather'; readonly profile: Weather }

export type ClockFault =
  | { readonly kind: 'stepClock'; readonly target: string; readonly clock: ClockName; readonly byMs: number }
  /** A step of the wall clock, under the name that stored plans have for it. */
  | { readonly kind: 'stepWall'; readonly target: string; readonly byMs: number }
  | { readonly kind: 'drift'; readonly target: string; readonly ppm: number }

export type DiskFault =
  | { readonly kind: 'slowDisk'; readonly target: string; readonly syncMs: number }
  | { readonly kind: 'stuckDisk' | 'readOnlyDisk'; readonly target: string }
  /** After `room` more bytes; default: at once. */
  | { readonly kind: 'fullDisk'; readonly target: string; readonly room?: number }
  /** The next sync or write fails. */
  | { readonly kind: 'failSync' | 'failWrite'; readonly target: string }
  /** One bit of a file changes. The fuzzer does that while the power is off. */
  | { readonly kind: 'rot'; readonly target: string; readonly file: BitrotTarget }
  /** The next read returns bytes of another place. */
  | { readonly kind: 'misdirect'; readonly target: string }
  /** The data folder is removed under the member. */
  | { readonly kind: 'removeFolder'; readonly target: string }
  /** The member is started on a copy of its disk that was made when the fault began, if all others remember more. */
  | { readonly kind: 'setBack'; readonly target: string }
  /** The disk is replaced by an empty one, and the member by a new one of the same name. */
  | { readonly kind: 'replace'; readonly target: string }

export type OperatorFault =
  /** An operator asks this member to lead. */
  | { readonly kind: 'transfer'; readonly target: string }
  /** An operator ends one of the holds. */
  | { readonly kind: 'steal' }

export type Names = string | readonly string[]

export interface Weather {
  readonly lossPpm: number
  readonly duplicatePpm: number
  readonly tailUs: number
  readonly reorderPpm: number
  readonly corruptPpm: number
}

export type FaultKind = Fault['kind']

/** The faults of these kinds. */
export type FaultOf<K extends FaultKind> = Extract<Fault, { readonly kind: K }>

/** A fault of a schedule: it begins at `atMs` of true time and ends `forMs` later, when whatever died is started again. */
export type Scheduled<F> = F & { readonly atMs: number; readonly forMs: number }
