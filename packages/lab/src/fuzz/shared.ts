import type { ClusterCheckers } from '../checkers/cluster-checkers.js'
import type { LockHistory } from '../checkers/lock-history.js'
import type { SimulatedStore } from '../cluster/simulated-store.js'
import type { Plan } from './plan.js'

/** Units of work on one counter: those that were acknowledged, and those that may or may not have happened. */
export interface Units {
  acknowledged: number
  unknown: number
}

/** What all clients of a run share. */
export interface Shared {
  readonly plan: Plan
  readonly checks: ClusterCheckers
  readonly history: LockHistory
  readonly store: SimulatedStore
  /** By resource. */
  readonly units: Map<string, Units>
  /** Operations that came to a good end, by kind. */
  readonly done: Map<string, number>
  /** Errors by code. */
  readonly errors: Map<string, number>
  /** Texts of holds on their way from one client to another. */
  readonly handed: string[]
  stopped: boolean
}
