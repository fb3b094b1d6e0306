import { type ErrorCode, ERRORS } from './error-table.js'
import { belowMark, staleHint } from './stale-token.js'

/** Why a hold was lost. */
export const LOST_REASONS = ['deadline', 'expired', 'stolen', 'moved', 'closed', 'epoch-changed'] as const
export type LostReason = (typeof LOST_REASONS)[number]

export interface ErrorOptions {
  /** What the reader can do next. */
  hint?: string | undefined
  cause?: unknown
}

const marker = (name: string) => Symbol.for(`leasehold.error.${name}`)

/** Makes `instanceof` work across copies of this package, by a shared symbol. */
function recognise(constructor: { readonly errorClass: string }, value: unknown): boolean {
  return typeof value === 'object' && value !== null && marker(constructor.errorClass) in value
}

/**
 * The base class of every error that Leasehold throws. `code` names what happened, `retryable` is true if the same call may
 * succeed later, and `hint` names what to do next.
 */
export class LeaseholdError extends Error {
  static readonly errorClass: string = 'LeaseholdError'
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly hint: string | undefined

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.retryable = ERRORS[code].retryable
    this.hint = options.hint
    this.name = new.target.errorClass
    for (let c: unknown = new.target; typeof c === 'function' && 'errorClass' in c; c = Object.getPrototypeOf(c)) {
      Object.defineProperty(this, marker(String(c.errorClass)), { value: true })
    }
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // A subclass without a name of its own would recognise every error of the class that it extends.
    if (!Object.hasOwn(this, 'errorClass')) return Function.prototype[Symbol.hasInstance].call(this, value)
    return recognise(this as unknown as { errorClass: string }, value)
  }

  toJSON(): Record<string, unknown> {
    return { code: this.code, message: this.message, retryable: this.retryable, hint: this.hint }
  }
}

/** The lock is held or has waiters, and the caller did not want to wait. */
export class BusyError extends LeaseholdError {
  static override readonly errorClass: string = 'BusyError'
  constructor(message: string, options?: ErrorOptions) {
    super('busy', message, options)
  }
}

/** The lock was not granted within `wait`. It never means that a hold was lost. */
export class AcquireTimeoutError extends LeaseholdError {
  static override readonly errorClass: string = 'AcquireTimeoutError'
  constructor(message: string, options?: ErrorOptions) {
    super('timeout', message, options)
  }
}

/** The caller's signal ended the waiting. `name` is `AbortError`, `cause` the signal's reason. */
export class AbortedError extends LeaseholdError {
  static override readonly errorClass: string = 'AbortedError'
  constructor(message: string, options?: ErrorOptions) {
    super('aborted', message, options)
    this.name = 'AbortError'
  }
}

/** The hold ended without a release by its owner. `result` is the value of a callback that had already returned. */
export class HoldLostError extends LeaseholdError {
  static override readonly errorClass: string = 'HoldLostError'
  readonly reason: LostReason
  result: unknown
  constructor(reason: LostReason, message: string, options?: ErrorOptions) {
    super('lost', message, options)
    this.reason = reason
  }
  override toJSON(): Record<string, unknown> {
    return { ...super.toJSON(), reason: this.reason }
  }
}

/** The session has expired or was closed, and nothing that belonged to it exists any more. */
export class SessionEndedError extends LeaseholdError {
  static override readonly errorClass: string = 'SessionEndedError'
  constructor(message: string, options?: ErrorOptions) {
    super('session-ended', message, options)
  }
}

/** The named hold does not exist (any more). Nothing was changed. */
export class NotHolderError extends LeaseholdError {
  static override readonly errorClass: string = 'NotHolderError'
  constructor(message: string, options?: ErrorOptions) {
    super('not-holder', message, options)
  }
}

/**
 * The token is below the mark of the resource, and nothing was written. Either the hold has ended and a later holder has
 * opened the resource, or the service has lower tokens than before. The hint names both, the likelier one first.
 */
export class StaleTokenError extends LeaseholdError {
  static override readonly errorClass: string = 'StaleTokenError'
  readonly resource: string
  readonly token: bigint
  readonly mark: bigint | undefined
  constructor(resource: string, token: bigint, mark: bigint | undefined, options: ErrorOptions = {}) {
    const below = mark === undefined ? 'below its mark' : belowMark(token, mark)
    super('stale-token', `stale token ${token} for ${JSON.stringify(resource)}: it is ${below}`, {
      ...options,
      hint: options.hint ?? staleHint(token, mark),
    })
    this.resource = resource
    this.token = token
    this.mark = mark
  }
  override toJSON(): Record<string, unknown> {
    return { ...super.toJSON(), resource: this.resource, token: String(this.token), mark: this.mark?.toString() }
  }
}

/** The register has another version than `ifVersion`. Nothing was written. */
export class VersionConflictError extends LeaseholdError {
  static override readonly errorClass: string = 'VersionConflictError'
  /** The register's version at that moment; 0 when it does not exist. */
  readonly version: bigint
  constructor(message: string, version: bigint, options?: ErrorOptions) {
    super('version-conflict', message, { hint: 'read the register again, then decide', ...options })
    this.version = version
  }
  override toJSON(): Record<string, unknown> {
    return { ...super.toJSON(), version: String(this.version) }
  }
}

/** The call itself is wrong (`invalid`) or contradicts what exists (`mismatch`). */
export class InvalidError extends LeaseholdError {
  static override readonly errorClass: string = 'InvalidError'
  constructor(message: string, options: ErrorOptions & { code?: 'invalid' | 'mismatch' } = {}) {
    super(options.code ?? 'invalid', message, options)
  }
}

/** A named bound was reached. */
export class LimitError extends LeaseholdError {
  static override readonly errorClass: string = 'LimitError'
  constructor(message: string, options?: ErrorOptions) {
    super('limit', message, options)
  }
}

/** The credentials are missing or wrong (`unauthenticated`) or lack the right (`forbidden`). */
export class AccessError extends LeaseholdError {
  static override readonly errorClass: string = 'AccessError'
  constructor(message: string, options: ErrorOptions & { code?: 'unauthenticated' | 'forbidden' } = {}) {
    super(options.code ?? 'unauthenticated', message, options)
  }
}

/** The service cannot be reached or has no quorum. This does not affect any hold. */
export class UnavailableError extends LeaseholdError {
  static override readonly errorClass: string = 'UnavailableError'
  constructor(message: string, options: ErrorOptions & { code?: 'unreachable' | 'no-quorum' } = {}) {
    super(options.code ?? 'unreachable', message, options)
  }
}

/** The request was sent and its answer was lost: it may or may not have taken effect. */
export class UnknownOutcomeError extends LeaseholdError {
  static override readonly errorClass: string = 'UnknownOutcomeError'
  constructor(message: string, options?: ErrorOptions) {
    super('unknown-outcome', message, options)
  }
}

/** The answer to this request number was acknowledged, and the service no longer has it. */
export class ExpiredRequestError extends LeaseholdError {
  static override readonly errorClass: string = 'ExpiredRequestError'
  constructor(message: string, options?: ErrorOptions) {
    super('expired-request', message, options)
  }
}

/** Events were missed. Read the state again and watch from its cursor. */
export class WatchError extends LeaseholdError {
  static override readonly errorClass: string = 'WatchError'
  constructor(message: string, options?: ErrorOptions) {
    super('gap', message, options)
  }
}

/** The service was restored from a backup, and earlier sessions, holds and cursors are invalid. */
export class EpochChangedError extends LeaseholdError {
  static override readonly errorClass: string = 'EpochChangedError'
  constructor(message: string, options?: ErrorOptions) {
    super('epoch-changed', message, options)
  }
}

/** The member's disk is full or broken. */
export class StorageError extends LeaseholdError {
  static override readonly errorClass: string = 'StorageError'
  constructor(message: string, options?: ErrorOptions) {
    super('storage', message, options)
  }
}

/** Fields that an error has beside code and message when it crosses a wire. */
export interface ErrorDetails {
  hint?: string | undefined
  reason?: LostReason | undefined
  resource?: string | undefined
  token?: bigint | undefined
  mark?: bigint | undefined
  version?: bigint | undefined
}

const CLASSES = {
  BusyError,
  AcquireTimeoutError,
  AbortedError,
  HoldLostError,
  SessionEndedError,
  NotHolderError,
  StaleTokenError,
  VersionConflictError,
  InvalidError,
  LimitError,
  AccessError,
  UnavailableError,
  UnknownOutcomeError,
  ExpiredRequestError,
  WatchError,
  EpochChangedError,
  StorageError,
} satisfies Record<(typeof ERRORS)[ErrorCode]['class'], unknown>

/** Creates the typed error of a code, as a client does for an answer of the service. */
export function errorOf(code: ErrorCode, message: string, details: ErrorDetails = {}): LeaseholdError {
  const options = { hint: details.hint }
  switch (code) {
    case 'lost':
      return new HoldLostError(details.reason ?? 'expired', message, options)
    case 'stale-token':
      return new StaleTokenError(details.resource ?? '', details.token ?? 0n, details.mark, options)
    case 'version-conflict':
      return new VersionConflictError(message, details.version ?? 0n, options)
    default:
      // Classes with a single code ignore this option.
      return new CLASSES[ERRORS[code].class](message, { ...options, code: code as never })
  }
}
