import { LeaseholdError, UnavailableError, UnknownOutcomeError } from '@leasehold/core'
import type { CasStore, Versioned } from './object.js'

/** The store has said, in a typed error, that nothing can have been written. */
export function isUnsent(error: unknown): boolean {
  return error instanceof UnavailableError
}

/** A typed error for what is wrong for good, such as a refused user. */
export function isDefinite(error: unknown): boolean {
  return error instanceof LeaseholdError && !isUnsent(error) && !(error instanceof UnknownOutcomeError)
}

/** Reads; whatever fails is typed. */
export async function read<V>(store: CasStore<V>, key: string): Promise<Versioned<V> | null> {
  try {
    return await store.read(key)
  } catch (error) {
    if (error instanceof LeaseholdError) throw error
    throw new UnavailableError(`the object cannot be read: ${messageOf(error)}`, {
      cause: error,
      hint: 'nothing was written; the same call may succeed later',
    })
  }
}

export function unknownOutcome(cause: unknown): UnknownOutcomeError {
  const message = `the write was sent and its answer is lost: it may or may not have taken effect (${messageOf(cause)})`
  return new UnknownOutcomeError(message, {
    cause,
    hint: 'give the unit of work up, or repeat it under a new hold',
  })
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
