import type { Model } from '../model.js'
import { ownerOf } from '../operation.js'
import { describeLock, LOCK_OPERATIONS, withoutUnprovenGrants } from './mutex.js'

/** A lock whose holder may acquire it again, and must release it as often. The state is the holder and the count. */
export function reentrantMutexModel(): Model<{ readonly holder: string; readonly count: number } | null> {
  return {
    name: 'reentrant-mutex',
    operations: LOCK_OPERATIONS,
    partition: (operation) => operation.key,
    init: () => null,
    step: (state, operation) => {
      const holder = ownerOf(operation)
      if (state !== null && state.holder !== holder) return []
      if (operation.op === 'acquire') return [{ holder, count: (state?.count ?? 0) + 1 }]
      if (state === null) return []
      return [state.count === 1 ? null : { holder, count: state.count - 1 }]
    },
    stateText: (state) => (state === null ? 'free' : `held by ${state.holder}, ${state.count} times`),
    describe: describeLock,
    isReadOnly: () => false,
    relevant: (operations) => withoutUnprovenGrants(operations),
    problem: () => undefined,
  }
}
