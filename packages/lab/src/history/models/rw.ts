import type { Model } from '../model.js'
import { type Operation, ownerOf } from '../operation.js'
import { describeLock, LOCK_OPERATIONS, withoutUnprovenGrants } from './mutex.js'
import { floorAfter, grantAfter, grantText, type NewestGrant, NO_GRANT, tellsTokens, tokenTold } from './token-rules.js'

interface RwState {
  readonly mode: 'exclusive' | 'shared'
  /** Holders in order, once per hold; empty when the lock is free. */
  readonly holders: readonly string[]
  /** The token of the newest generation; undefined in a history without tokens. */
  readonly newest: NewestGrant | undefined
}

/**
 * Shared and exclusive holds. Shared holds that overlap form one generation with one token; each generation and each
 * exclusive hold has a greater token than all before it. A history that tells no token is judged on exclusion alone.
 */
export function rwModel(): Model<RwState> {
  return {
    name: 'rw',
    operations: LOCK_OPERATIONS,
    partition: (operation) => operation.key,
    init: (operations) => ({
      mode: 'exclusive',
      holders: [],
      newest: tellsTokens(operations) ? NO_GRANT : undefined,
    }),
    step: (state, operation) => (operation.op === 'acquire' ? acquire(state, operation) : release(state, operation)),
    stateText: ({ mode, holders, newest }) => {
      const held = holders.length === 0 ? 'free' : `${mode} by ${holders.join(' and ')}`
      if (newest === undefined) return held
      return `${held}, ${grantText(newest)}`
    },
    describe: describeLock,
    isReadOnly: () => false,
    // A shared hold keeps its generation, and so its token, alive.
    relevant: (operations) =>
      withoutUnprovenGrants(operations, ({ mode }) => mode === 'shared' && tellsTokens(operations)),
    problem: () => undefined,
  }
}

function acquire(state: RwState, operation: Operation): readonly RwState[] {
  const mode = operation.mode ?? 'exclusive'
  const joins = mode === 'shared' && state.mode === 'shared' && state.holders.length > 0
  if (state.holders.length > 0 && !joins) return []
  const holders = [...state.holders, ownerOf(operation)].sort()
  if (state.newest === undefined) return [{ mode, holders, newest: undefined }]
  const newest = joins ? tokenTold(state.newest, operation.token) : grantAfter(state.newest, operation.token)
  return newest === undefined ? [] : [{ mode, holders, newest }]
}

function release(state: RwState, operation: Operation): readonly RwState[] {
  const at = state.holders.indexOf(ownerOf(operation))
  if (at < 0 || (operation.mode !== undefined && operation.mode !== state.mode)) return []
  const holders = state.holders.toSpliced(at, 1)
  const mode = holders.length === 0 ? 'exclusive' : state.mode
  if (state.newest === undefined) return [{ mode, holders, newest: undefined }]
  const newest = tokenTold(state.newest, operation.token)
  if (newest === undefined) return []
  if (holders.length > 0) return [{ mode, holders, newest }]
  // Which hold opened a generation is not known: its floor stays.
  const isExclusive = state.mode === 'exclusive'
  return [{ mode, holders, newest: isExclusive ? floorAfter(newest, operation) : { ...newest, token: null } }]
}
