import { InvalidError, type Mode, nameProblem, parseToken, type Token } from '@leasehold/core'

/**
 * What a guard needs of a hold. The client's `Hold` satisfies it. A program that got its token from `leasehold run` builds
 * one with {@link handHeld}.
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
  /** Mode, token and slot of each lock. Needed when the locks of one hold have different modes. */
  readonly locks?: readonly {
    readonly name: string
    readonly mode: Mode
    readonly token: bigint
    readonly slot?: number | undefined
  }[]
  /** Throws unless the hold is held now. */
  assertHeld(): void
}

/** One validated lock of a hold. */
export interface HeldLock {
  readonly name: string
  readonly token: Token
  readonly mode: 'exclusive' | 'shared' | 'permits'
  /** The permit's number; undefined unless `mode` is `permits`. */
  readonly slot: number | undefined
}

/**
 * Validates a hold and returns its locks.
 * @throws InvalidError for anything that is not a hold, such as an approximate lock, or a token that is a number
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
 * Builds a hold from a lock's name and its token as text, which is what `leasehold run` passes to a child process. Such a
 * hold has no local deadline (the process that keeps the lease has it), so only the guard protects.
 * @throws InvalidError
 */
export function handHeld(name: string | undefined, token: string | bigint | undefined): GuardableHold {
  if (name === undefined || token === undefined) throw new InvalidError('a hold needs the name of a lock and a token')
  const parsed = parseToken(token)
  return { names: [name], mode: 'exclusive', tokenOf: () => parsed, assertHeld() {} }
}

/** A short description of a value for error messages. */
export function describe(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40))
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'undefined') return String(value)
  return `a value of type ${typeof value}`
}
