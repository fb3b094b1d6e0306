import { InvalidError, StaleTokenError, type Token, utf8Length } from '@leasehold/core'
import type { GuardOptions, OpenOptions } from './guard.js'
import { describe, type GuardableHold, type HeldLock, locksOf } from './hold.js'

/** Enough for a lock's name and `#slot`. */
export const RESOURCE_BYTES_MAX = 1_024

/** One mark to raise. */
export interface Target {
  /** The key of the mark: the resource, or `resource#slot` for a permit. */
  readonly mark: string
  /** The resource without a slot, which stores the kind. */
  readonly resource: string
  readonly kind: 'lock' | 'slot'
  readonly lock: string
  readonly token: Token
  /** False for shared holds, which only open and read. */
  readonly writes: boolean
}

/** The marks that a hold opens. */
export interface Opening {
  /** Sorted by mark, so that two openings cannot deadlock. */
  readonly targets: readonly Target[]
  /** Whether all locks are shared, so that nothing may be written. */
  readonly readOnly: boolean
}

/**
 * Returns the marks that a hold raises.
 * @throws InvalidError if the argument is not a hold, lacks the lock, or two of its locks share one resource
 */
export function openingOf(hold: GuardableHold, options: GuardOptions, open: OpenOptions = {}): Opening {
  const all = locksOf(hold)
  const chosen = open.lock === undefined ? all : all.filter((lock) => lock.name === open.lock)
  if (chosen.length === 0) {
    const names = all.map((lock) => JSON.stringify(lock.name)).join(', ')
    throw new InvalidError(`this hold has no lock ${describe(open.lock)}`, { hint: `it has ${names}` })
  }
  const targets = chosen.map((lock) => targetOf(hold, lock, options)).sort((a, b) => (a.mark < b.mark ? -1 : 1))
  for (let i = 1; i < targets.length; i++) {
    if (targets[i]?.mark === targets[i - 1]?.mark) {
      throw new InvalidError(`two locks of this hold have the same resource ${JSON.stringify(targets[i]?.mark)}`, {
        code: 'mismatch',
        hint: 'one resource belongs to one lock: open the other one alone with { lock }',
      })
    }
  }
  return { targets, readOnly: !targets.some((target) => target.writes) }
}

function targetOf(hold: GuardableHold, lock: HeldLock, options: GuardOptions): Target {
  const resource = checkResource(options.resource === undefined ? lock.name : options.resource(hold, lock.name))
  const { name, token, slot } = lock
  const writes = lock.mode !== 'shared'
  if (slot === undefined) return { mark: resource, resource, kind: 'lock', lock: name, token, writes }
  return { mark: `${resource}#${slot}`, resource, kind: 'slot', lock: name, token, writes }
}

/** @throws InvalidError */
export function checkResource(resource: unknown): string {
  if (typeof resource !== 'string') throw new InvalidError(`a resource is a string, not ${describe(resource)}`)
  const bytes = utf8Length(resource)
  if (bytes < 1 || bytes > RESOURCE_BYTES_MAX || resource.includes('\0')) {
    throw new InvalidError(`a resource has 1 to ${RESOURCE_BYTES_MAX} bytes of UTF-8 without NUL`)
  }
  return resource
}

/** The rejection of a stale token. Its hint names both possible reasons. */
export function staleToken(resource: string, token: bigint, mark: bigint | undefined): StaleTokenError {
  return new StaleTokenError(resource, token, mark)
}

/** The rejection of a wrong kind or of another lock; undefined if both agree. */
export function mismatch(
  target: Target,
  stored: { readonly kind: string; readonly lock: string },
  kind: string,
): InvalidError | undefined {
  if (stored.kind !== kind) {
    const kinds: Record<string, string> = { lock: 'a lock', permits: 'permits', slot: 'a permit of another resource' }
    return new InvalidError(
      `the resource ${JSON.stringify(target.resource)} is guarded by ${kinds[stored.kind] ?? stored.kind}, not by ${kinds[kind] ?? kind}`,
      { code: 'mismatch', hint: 'a resource belongs to one lock of one kind' },
    )
  }
  if (stored.lock !== target.lock) {
    return new InvalidError(
      `the resource ${JSON.stringify(target.resource)} belongs to the lock ${JSON.stringify(stored.lock)}, not to ${JSON.stringify(target.lock)}`,
      {
        code: 'mismatch',
        hint: 'tokens of different locks do not exclude each other: give each lock its own resource',
      },
    )
  }
  return undefined
}

/** The rejection of a write under a shared hold. */
export function onlyReads(cause?: unknown): InvalidError {
  return new InvalidError('a shared hold can only read', {
    code: 'mismatch',
    cause,
    hint: 'acquire the lock exclusively to write',
  })
}
