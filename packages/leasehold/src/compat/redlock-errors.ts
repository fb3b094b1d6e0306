import { type ErrorCode, type ErrorOptions, HoldLostError, LeaseholdError } from '@leasehold/core'

/** redlock's statistics of an attempt. There is one service here, so there is one vote. */
export interface ExecutionStats {
  readonly membershipSize: number
  readonly quorumSize: number
  readonly votesFor: ReadonlySet<unknown>
  readonly votesAgainst: ReadonlyMap<unknown, Error>
}

export interface ExecutionResult {
  readonly attempts: readonly Promise<ExecutionStats>[]
}

/**
 * The failure of a call. Unlike in redlock, `code` and `cause` give the reason: `busy` and `timeout` mean that the lock was
 * never acquired, `lost` that it was acquired and is no longer held, `unreachable` that the outcome is unknown.
 */
export class ExecutionError extends LeaseholdError implements ExecutionResult {
  static override readonly errorClass: string = 'ExecutionError'
  readonly attempts: readonly Promise<ExecutionStats>[]
  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(code, message, options)
    this.attempts = options.cause instanceof Error ? [statsOf(options.cause)] : []
  }
}

/** The name that redlock 4 gives to {@link ExecutionError}. */
export class LockError extends ExecutionError {
  static override readonly errorClass: string = 'LockError'
}

/** The `error` event of an acquire that failed because the lock is held elsewhere. */
export class ResourceLockedError extends LeaseholdError {
  static override readonly errorClass: string = 'ResourceLockedError'
  constructor(message: string, options: ErrorOptions = {}) {
    super('busy', message, options)
  }
}

/** The statistics of one operation at the one service. */
export function statsOf(against?: Error): Promise<ExecutionStats> {
  return Promise.resolve({
    membershipSize: 1,
    quorumSize: 1,
    votesFor: new Set<unknown>(against === undefined ? ['service'] : []),
    votesAgainst: new Map<unknown, Error>(against === undefined ? [] : [['service', against]]),
  })
}

/** Converts a `LeaseholdError` to redlock's error. Returns other errors unchanged. */
export function executionError(error: unknown, message?: string): unknown {
  if (!(error instanceof LeaseholdError) || error instanceof ExecutionError || error.code === 'invalid') return error
  return new ExecutionError(error.code, message ?? error.message, { cause: error, hint: error.hint })
}

export function lostError(lost: HoldLostError | null, message: string): ExecutionError {
  return new ExecutionError('lost', lost === null ? message : `${message} ${lost.message}`, {
    cause: lost ?? undefined,
    hint: lost?.hint ?? 'acquire it again',
  })
}
