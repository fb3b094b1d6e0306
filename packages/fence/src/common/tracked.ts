import type { GuardableHold } from './hold.js'
import { observedGuard } from './observe.js'

/** The key under which the client's `Hold` offers its internals. */
const HOLD_INTERNALS = Symbol.for('leasehold.hold')

/**
 * Runs a guarded effect so that the hold's `release()` waits for it, if the hold supports that.
 * Rejects with HoldLostError or NotHolderError, without running the effect, if the hold has ended or is being released.
 */
export function tracked<T>(hold: GuardableHold, effect: () => Promise<T>): Promise<T> {
  return observedGuard(hold, () => track(hold, effect))
}

async function track<T>(hold: GuardableHold, effect: () => Promise<T>): Promise<T> {
  const internals = (hold as { [HOLD_INTERNALS]?: { track?(effect: Promise<unknown>): void } } | null)?.[HOLD_INTERNALS]
  if (typeof internals?.track !== 'function') return await effect()
  let settle: () => void = () => {}
  internals.track(
    new Promise<void>((resolve) => {
      settle = resolve
    }),
  )
  try {
    return await effect()
  } finally {
    settle()
  }
}
