import { LeaseholdError, UnavailableError, UnknownOutcomeError } from '@leasehold/core'
import { unavailable } from '../common/errors.js'
import type { CasStore, Versioned } from './store.js'

/** The store has reported, by a typed error, that nothing can have been written. */
export function isUnsent(error: unknown): boolean {
  return error instanceof UnavailableError
}

/** A typed error for a permanent failure, such as rejected credentials. */
export function isDefinite(error: unknown): boolean {
  return error instanceof LeaseholdError && !isUnsent(error) && !(error instanceof UnknownOutcomeError)
}

/** Reads an object. Every failure is typed. */
export async function read<V>(store: CasStore<V>, key: string): Promise<Versioned<V> | null> {
  try {
    return await store.read(key)
  } catch (error) {
    if (error instanceof LeaseholdError) throw error
    throw unavailable('the object cannot be read', error)
  }
}
