export {
  AbortedError,
  AccessError,
  AcquireTimeoutError,
  BusyError,
  type ErrorCode,
  EpochChangedError,
  ExpiredRequestError,
  formatToken,
  HoldLostError,
  InvalidError,
  LeaseholdError,
  LimitError,
  type LostReason,
  NotHolderError,
  padToken,
  parseToken,
  SessionEndedError,
  StaleTokenError,
  StorageError,
  type Token,
  UnavailableError,
  UnknownOutcomeError,
  VersionConflictError,
  WatchError,
} from '@leasehold/core'
export type { AcquireCallOptions as AcquireOptions } from '@leasehold/client'
export * from './approximate.js'
export * from './locks.js'
export { VERSION } from './version.js'
