import type { Model } from '../model.js'
import { type Operation, ownerOf } from '../operation.js'
import { describeLock, LOCK_OPERATIONS, withoutUnprovenGrants } from './mutex.js'
import {
  floorAfter,
  grantAfter,
  grantText,
  type NewestGrant,
  NO_GRANT,
  requireTokens,
  tokenTold,
} from './token-rules.js'

interface FencedState {
  readonly holder: string | null
  readonly newest: NewestGrant
}

/** An owner-aware mutex whose grants carry strictly increasing tokens. A release may name its token; it must be the grant's. */
export function fencedMutexModel(): Model<FencedState> {
  return {
    name: 'fenced-mutex',
    operations: LOCK_OPERATIONS,
    partition: (operation) => operation.key,
    init: (operations) => {
      requireTokens(operations)
      return { holder: null, newest: NO_GRANT }
    },
    step: stepFenced,
    stateText: ({ holder, newest }) => `${holder === null ? 'free' : `held by ${holder}`}, ${grantText(newest)}`,
    describe: describeLock,
    isReadOnly: () => false,
    relevant: (operations) => withoutUnprovenGrants(operations),
    problem: () => undefined,
  }
}

function stepFenced(state: FencedState, operation: Operation): readonly FencedState[] {
  const owner = ownerOf(operation)
  if (operation.op === 'acquire') {
    const newest = state.holder === null ? grantAfter(state.newest, operation.token) : undefined
    return newest === undefined ? [] : [{ holder: owner, newest }]
  }
  if (state.holder !== owner) return []
  const newest = tokenTold(state.newest, operation.token)
  return newest === undefined ? [] : [{ holder: null, newest: floorAfter(newest, operation) }]
}
