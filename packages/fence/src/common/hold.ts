import { InvalidError, type Mode, nameProblem, parseToken, type Token } from '@leasehold/core'
import { observedGuard } from './observe.js'

/**
 * What a guard needs of a hold. The client's `Hold` has it all; a program that got its token from `leasehold run`
 * can write it down by hand.
 * @example
 * const hold = handHeld(process.env.LEASEHOLD_LOCK, process.env.LEASEHOLD_FENCING_TOKEN)
 */
export interface GuardableHold {
  /** The locks of the hold. */
  readonly names: readonly string[]
  /** Mode of the first lock. */
  readonly mode: Mode
  /** The fencing token of one of the locks. */
  tokenOf(name: string): bigint
  /** The permit's number, when the lock is a semaphore. */
  slotOf?(name: string): number | undefined
  /** Mode, token and slot lock by lock. Needed when locks of one hold have different modes. */
  readonly locks?: readonly {
    readonly name: string
    readonly mode: Mode
    readonly token: bigint
    readonly slot?: number | undefined
  }[]
  /** Throws unless the hold is held at this moment. */
  assertHeld(): void
}

/** One lock of a hold, with everything checked. */
export interface HeldLock {
  readonly name: string
  readonly token: Token
  readonly mode: 'exclusive' | 'shared' | 'permits'
  /** Number of the permit; undefined unless `mode` is `permits`. */
  readonly slot: number | undefined
}

/**
 * The locks of a hold, checked.
 * @throws InvalidError for everything that is no hold, such as an approximate lock, or a token that is a number
 */
export function locksOf(hold: GuardableHold): readonly HeldLock[] {
  if (typeof hold !== 'object' || hold === null) throw new InvalidError(`a guard takes a hold, not ${describe(hold)}`)
  if (typeof hold.assertHeld !== 'function' || !Array.isArray(hold.names) || typeof hold.tokenOf !== 'function') {
    throw new InvalidError('a guard takes a hold with names, tokenOf() and assertHeld()', {
      hint: 'an approximate lock has no token: nothing can be guarded with it',
    })
  }
  const { names } = hold
  if (names.length === 0) throw new InvalidError('a hold has at least one lock, this one has none')
  return names.map((name: unknown) => {
    const problem = nameProblem(name)
    if (problem !== undefined) throw new InvalidError(problem)
    return lockOf(hold, name as string)
  })
}

function lockOf(hold: GuardableHold, name: string): HeldLock {
  const known = hold.locks?.find((lock) => lock.name === name)
  const token = parseToken(known === undefined ? hold.tokenOf(name) : known.token)
  const slot = known === undefined ? hold.slotOf?.(name) : known.slot
  const mode = known?.mode ?? hold.mode
  if (mode === 'shared' || mode === 'exclusive') return { name, token, mode, slot: undefined }
  if (typeof mode !== 'object' || mode === null || !Number.isSafeInteger(mode.permits)) {
    throw new InvalidError(`a mode is 'exclusive', 'shared' or { permits }, not ${describe(mode)}`)
  }
  if (!Number.isSafeInteger(slot) || (slot as number) < 0) {
    throw new InvalidError(`the permit of ${JSON.stringify(name)} needs its slot, not ${describe(slot)}`)
  }
  return { name, token, mode: 'permits', slot }
}

/**
 * A hold from a lock's name and its token as text: what `leasehold run` gives to a child process. Only the guard protects:
 * the deadline is kept by whoever keeps the lease.
 * @throws InvalidError
 */
export function handHeld(name: string | undefined, token: string | bigint | undefined): GuardableHold {
  if (name === undefined || token === undefined) throw new InvalidError('a hold needs the name of a lock and a token')
  const parsed = parseToken(token)
  return { names: [name], mode: 'exclusive', tokenOf: () => parsed, assertHeld() {} }
}

const HOLD_INTERNALS = Symbol.for('leasehold.hold')

/**
 * Runs a guarded effect so that the hold's `release()` waits for it, where the hold can.
 * Rejects with HoldLostError or NotHolderError if the hold is over or being released: the effect does not begin then.
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

export function describe(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40))
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'undefined') return String(value)
  return `a value of type ${typeof value}`
}
