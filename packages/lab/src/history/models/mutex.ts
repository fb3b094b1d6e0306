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
    problem: () => undefined,
  }
}
