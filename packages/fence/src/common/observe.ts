import type { Ended, Observer } from '@leasehold/client'
import type { GuardableHold } from './hold.js'

/** The client's process-wide list of observers, read without importing the client. */
const OBSERVERS = Symbol.for('leasehold.observers')

/** Reports a guarded effect to the client's observers. Without observers it costs one check of a list. */
export function observedGuard<T>(hold: GuardableHold, effect: () => Promise<T>): Promise<T> {
  const observers = (globalThis as { [OBSERVERS]?: Observer[] })[OBSERVERS]
  return observers === undefined || observers.length === 0 ? effect() : observed([...observers], hold, effect)
}

async function observed<T>(observers: Observer[], hold: GuardableHold, effect: () => Promise<T>): Promise<T> {
  const ends: ((ended: Ended) => void)[] = []
  for (const observer of observers) {
    quietly(() => {
      if (observer.wants('guard')) ends.push(observer.begin({ kind: 'guard', names: hold.names, hold }))
    })
  }
  const end = (ended: Ended) => {
    for (const each of ends) quietly(() => each(ended))
  }
  try {
    const value = await effect()
    end({})
    return value
  } catch (error) {
    end({ error })
    throw error
  }
}

function quietly(call: () => void): void {
  try {
    call()
  } catch (error) {
    console.error('leasehold: an observer threw', error)
  }
}
