export { ABILITIES, type Ability, ALL_CAPABILITIES, COMPLETE_ENGINES, requireAbility } from './capabilities.js'
export { formatCursor, parseCursor } from './cursor.js'
export type { CampaignOptions, Election, Leader } from './election.js'
export { Elapsed } from './elapsed.js'
export * from './engine.js'
export {
  fenceOf,
  type HeldLock,
  type Hold,
  holdInternals,
  type HoldState,
  type HoldWarning,
  trackEffect,
} from './hold.js'
export { LazyEngine } from './lazy.js'
export {
  type AdoptOptions,
  createLocksOn,
  type Locks,
  type LocksWarning,
  type WatchOptions,
} from './locks.js'
export type { OnceOptions } from './once.js'
export type {
  AcquireOptions as AcquireCallOptions,
  LockName,
  LockNames,
  LocksOptions,
  RequestOptions,
} from './options.js'
export { addObserver, type Begun, type Ended, type ObservedKind, type Observer } from './observe.js'
export { type ClientPlatform, defaultPlatform } from './platform.js'
export * from './protocol/index.js'
export * from './http/index.js'
export * from './remote/index.js'
export type { PutOptions, Register, RegisterEntry } from './register.js'
export { abortedError, bounded, delay } from './race.js'
export { deserializeHold } from './serialize.js'
export { after } from './timers.js'
export type {
  DelayRow,
  HeldRow,
  LocksView,
  PendingRow,
  QueryOptions,
  SessionRow,
  WatchEvent,
} from './views.js'
