export { ABILITIES, type Ability, ALL_CAPABILITIES, COMPLETE_ENGINES, requireAbility } from './capabilities.js'
export { formatCursor, parseCursor } from '@leasehold/core'
export type { CampaignOptions, Election, Leader } from './coordination/election.js'
export { Elapsed } from './lease/elapsed.js'
export { type SessionEndReason, sessionAbandonedError, sessionClosedError, sessionEndedError } from './end-reasons.js'
export * from './engine.js'
export {
  fenceOf,
  type HeldLock,
  type Hold,
  holdInternals,
  type HoldState,
  type HoldWarning,
  trackEffect,
} from './hold/hold.js'
export { LazyEngine } from './lazy-engine.js'
export {
  type AdoptOptions,
  createLocksOn,
  type Locks,
  type LocksWarning,
  type WatchOptions,
} from './locks.js'
export type { OnceOptions } from './coordination/once.js'
export type {
  AcquireOptions as AcquireCallOptions,
  LockName,
  LockNames,
  LocksOptions,
  RequestOptions,
} from './options.js'
export { addObserver, type Begun, type Ended, type ObservedKind, type Observer } from './observers.js'
export { type ClientPlatform, defaultPlatform } from './platform.js'
export * from './protocol/index.js'
export * from './http/index.js'
export * from './remote/index.js'
export type { PutOptions, Register, RegisterEntry } from './coordination/register.js'
export { abortedError, bounded, delay } from './async/bounded-wait.js'
export { deserializeHold } from './hold/serialized-hold.js'
export { after } from './async/timers.js'
export type {
  DelayRow,
  HeldRow,
  LocksView,
  PendingRow,
  QueryOptions,
  SessionRow,
  WatchEvent,
} from './namespace-view.js'
