import type { Model } from '../model.js'
import { type Operation, ownerOf } from '../operation.js'

/** The names under which histories acquire and release. */
export const LOCK_OPERATIONS = { acquire: 'acquire', lock: 'acquire', release: 'release', unlock: 'release' } as const

/** `name acquire …` or `name release …`, with what the answer told. */
export function describeLock(operation: Operation): string {
  const details = [
    operation.mode,
    operation.slot === undefined ? undefined : `slot ${operation.slot}`,
    operation.permits === undefined ? undefined : `of ${operation.permits}`,
    operation.token === undefined ? undefined : `token ${operation.token}`,
  ].filter((detail) => detail !== undefined)
  return [ownerOf(operation), operation.op, ...details, ...(operation.outcome === 'ok' ? [] : ['?'])].join(' ')
}

/**
 * A grant of unknown outcome only stands in the way of others, unless an acknowledged release of its owner proves it. Without
 * that proof the grants of an owner that may have happened are left out, and its releases if it has no grant left.
 * `isOfUse` keeps grants that a model needs for another reason.
 */
export function withoutUnprovenGrants(
  operations: readonly Operation[],
  isOfUse: (grant: Operation) => boolean = () => false,
): readonly Operation[] {
  const ownersOf = (some: readonly Operation[], op: string) =>
    new Set(some.filter((operation) => operation.op === op).map(ownerOf))
  const acknowledged = operations.filter(({ outcome }) => outcome === 'ok')
  const proven = ownersOf(acknowledged, 'release')
  const withGrants = operations.filter(
    (operation) =>
      operation.op !== 'acquire' || operation.outcome === 'ok' || proven.has(ownerOf(operation)) || isOfUse(operation),
  )
  const holders = ownersOf(withGrants, 'acquire')
  return withGrants.filter(
    (operation) => operation.op !== 'release' || operation.outcome === 'ok' || holders.has(ownerOf(operation)),
  )
}

/** A lock with one holder, which alone may release it and cannot acquire it twice. The state is the holder. */
export function mutexModel(): Model<string | null> {
  return {
    name: 'mutex',
    operations: LOCK_OPERATIONS,
    partition: (operation) => operation.key,
    init: () => null,
    step: (holder, operation) => {
      const owner = ownerOf(operation)
      if (operation.op === 'acquire') return holder === null ? [owner] : []
      return holder === owner ? [null] : []
    },
    stateText: (holder) => (holder === null ? 'free' : `held by ${holder}`),
    describe: describeLock,
    isReadOnly: () => false,
    relevant: (operations) => withoutUnprovenGrants(operations),
    problem: () => undefined,
  }
}
