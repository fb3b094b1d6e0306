import type { Limits } from '@leasehold/core'
import type { BitrotTarget, ClientRights, EffectName, FormatOf } from '../cluster/index.js'
import type { Names } from '../faults/fault.js'
import type { ClockName } from '../world/index.js'

/**
 * A fault as a scenario file writes it, with times in seconds. `at`: a second, or a point of a client's program:
 * `C1 before write`, `C1 in write` (after the local check, before the message leaves), `C1 after read`; `C1 in write #2` for
 * the second time. `who` is then that client by default.
 */
export type ScenarioFault = { readonly at: number | string; readonly who?: string } & (
  | { readonly do: 'pause'; readonly for: number }
  | { readonly do: 'kill' }
  | { readonly do: 'powerOff' }
  | { readonly do: 'start' }
  | { readonly do: 'suspend'; readonly for: number }
  | { readonly do: 'stepClock'; readonly clock: ClockName; readonly by: number }
  | { readonly do: 'drift'; readonly ppm: number }
  | ScenarioNetworkFault
  | SystemFault
)

export type ScenarioNetworkFault =
  | { readonly do: 'cut'; readonly from: Names; readonly to: Names; readonly oneWay?: boolean; readonly for?: number }
  | { readonly do: 'isolate'; readonly for?: number }
  | {
      readonly do: 'hold'
      readonly from: string
      readonly to: string
      readonly for: number
      readonly label?: string
      readonly count?: number
    }
  | { readonly do: 'clog'; readonly from: string; readonly to: string; readonly for: number }
  /** A middlebox forgets their connections: nothing arrives on these any more, and neither side is told. */
  | { readonly do: 'forget'; readonly from: string; readonly to: string }
  | {
      readonly do: 'link'
      readonly from: Names
      readonly to: Names
      readonly delay?: number
      readonly lossPercent?: number
      readonly for?: number
    }

/** How a member goes down, and comes back `for` seconds later. With `powerAfter` the power is cut that long after its start. */
interface Outage {
  readonly for?: number
  readonly how?: 'power' | 'kill'
  readonly powerAfter?: number
}

/** Faults that only systems of one kind have, by `action`. `who` is a member, or the leader by default. */
export type SystemFault = { readonly do: 'system' } & (
  | ({ readonly action: 'disk'; readonly for?: number } & DiskTroubleSpec)
  /** One bit of a file changes on the platter; default: of the log. */
  | { readonly action: 'rot'; readonly file?: BitrotTarget }
  /** A later version has written that file, on the disk of a member that is down. */
  | { readonly action: 'format'; readonly file: FormatOf; readonly format: number }
  /** The credentials of a client expire. */
  | { readonly action: 'expire' }
  /** What a client may do from now on, by prefixes. */
  | ({ readonly action: 'allow' } & ClientRights)
  | ({ readonly action: 'blackout' | 'down' } & Outage)
  /** The member goes down at its `nth` effect from now on; `what`: only effects of this name count. */
  | ({ readonly action: 'dieAtEffect'; readonly nth: number; readonly what?: EffectName } & Outage)
  /** The connections of a client break. */
  | { readonly action: 'reset' }
  /** A copy of the disk is kept. `setBack`: the power goes, and the member starts on that copy. */
  | { readonly action: 'copyDisk' }
  | { readonly action: 'setBack'; readonly for?: number }
  | { readonly action: 'transfer'; readonly to: string }
  | { readonly action: 'add' | 'promote' | 'remove' | 'replaceDisk' }
  | { readonly action: 'configure'; readonly level?: number; readonly limits?: Partial<Limits> }
  | { readonly action: 'backup' }
  | { readonly action: 'restore'; readonly epoch?: number }
  /** The service is bootstrapped again, on emptied disks. */
  | { readonly action: 'foundAgain' }
  /** The replica of a Redis becomes the primary. */
  | { readonly action: 'failover' }
  | { readonly action: 'evict'; readonly key: string }
)

export type DiskTroubleSpec =
  | { readonly trouble: 'failSync' | 'failWrite' | 'readOnly' | 'stuck' | 'misdirect' | 'removed' }
  /** `ms`: how long a sync takes; default 2000. */
  | { readonly trouble: 'slow'; readonly ms?: number }
  /** `room`: bytes that still fit; default 0. */
  | { readonly trouble: 'full'; readonly room?: number }

export type SystemAction = SystemFault['action']
type Timed<F> = F & { readonly at: number | string; readonly who?: string }
/** The scheduled faults with this action. */
export type SystemFaultOf<A extends SystemAction> = Timed<Extract<SystemFault, { readonly action: A }>>
/** What a system does at its own faults. */
export type SystemActions = { readonly [A in SystemAction]?: (fault: SystemFaultOf<A>) => void }
