import { InvalidError, type Mode, parseToken, StaleTokenError, type Token } from '@leasehold/core'

/** What a guard needs of a hold: every `Hold` of the client fits. A guard uses only the tokens that were granted. */
export interface GuardableHold {
  readonly locks: readonly {
    readonly name: string
    readonly mode: Mode
    readonly token: bigint
    readonly slot?: number | undefined
  }[]
  /** Throws when the hold is over on this machine's clocks. */
  assertHeld(): void
}

declare const fenced: unique symbol

/** A transaction that was opened with a token: the type of everything that must not run without one. */
export type Fenced<Tx> = Tx & { readonly [fenced]: true }

export interface OpenOptions {
  /** Of a hold of several locks: the one that protects this resource. Default: all of them, each with its own mark. */
  readonly lock?: string
}

export interface Guard<Tx> {
  /**
   * Opens the resource (raises its mark) and runs `body` in one transaction with it. The only way to read or write under
   * a lock without losing updates: a stale write that arrives later than this opening is refused.
   * @throws StaleTokenError, HoldLostError, UnavailableError, UnknownOutcomeError
   */
  with<T>(hold: GuardableHold, body: (tx: Fenced<Tx>) => T | Promise<T>): Promise<T>
  with<T>(hold: GuardableHold, options: OpenOptions, body: (tx: Fenced<Tx>) => T | Promise<T>): Promise<T>
  /** The same in a transaction of the caller's: to be its first statement. If it throws, roll back. */
  enter(tx: Tx, hold: GuardableHold, options?: OpenOptions): Promise<Fenced<Tx>>
}

export interface GuardOptions {
  /** Names the resource of a hold; default: the lock's name. */
  readonly resource?: (hold: GuardableHold) => string
}

/** One mark to raise. */
export interface Mark {
  readonly resource: string
  readonly kind: 'lock' | 'permits'
  readonly slot: number | undefined
  readonly token: Token
  /** Shared holds may only read. */
  readonly mayWrite: boolean
}

/**
 * The marks that a hold opens, in one order for everybody, so that two transactions never wait for each other in a ring.
 * @throws InvalidError when the hold or the options do not name one resource per lock
 */
export function marksOf(hold: GuardableHold, guard: GuardOptions, open: OpenOptions = {}): Mark[] {
  if (!Array.isArray(hold?.locks) || hold.locks.length === 0 || typeof hold.assertHeld !== 'function') {
    throw new InvalidError('a guard is opened with a hold', { hint: 'pass the hold itself, not its token' })
  }
  const locks = open.lock === undefined ? hold.locks : hold.locks.filter((one) => one.name === open.lock)
  if (locks.length === 0) throw new InvalidError(`the hold has no lock ${JSON.stringify(open.lock)}`)
  if (guard.resource !== undefined && locks.length > 1) {
    throw new InvalidError('a hold of several locks, and one resource: which lock protects it?', {
      hint: 'name it: guard.with(hold, { lock }, …)',
    })
  }
  const marks = locks.map(({ name, mode, token, slot }): Mark => {
    const resource = guard.resource === undefined ? name : guard.resource(hold)
    if (typeof resource !== 'string' || resource === '') throw new InvalidError('a resource has a name')
    const permits = typeof mode === 'object'
    if (permits && (typeof slot !== 'number' || !Number.isSafeInteger(slot) || slot < 0)) {
      throw new InvalidError(`a permit of ${JSON.stringify(name)} without a slot`)
    }
    return { resource, kind: permits ? 'permits' : 'lock', slot: permits ? slot : undefined, token: parseToken(token), mayWrite: mode !== 'shared' }
  })
  return marks.sort((a, b) => (rowOf(a) < rowOf(b) ? -1 : 1))
}

/** The row of a mark: the resource, or of a semaphore the resource and the slot. */
export function rowOf(mark: Pick<Mark, 'resource' | 'slot'>): string {
  return mark.slot === undefined ? mark.resource : `${mark.resource}#${mark.slot}`
}

/** The refusal, with the reader's next step: a mark of a later epoch means that the service was replaced or restored. */
export function staleToken(resource: string, token: bigint, mark: bigint | undefined, cause?: unknown): StaleTokenError {
  const younger = mark !== undefined && mark >> 48n > token >> 48n
  return new StaleTokenError(resource, token, mark, {
    cause,
    ...(younger
      ? { hint: 'the lock service looks younger than this resource: start or restore it with a higher --epoch' }
      : {}),
  })
}

export function kindMismatch(resource: string, known: string, asked: string, cause?: unknown): InvalidError {
  const text = (kind: string) => (kind === 'permits' ? 'the permits of a semaphore' : 'a lock')
  return new InvalidError(`${JSON.stringify(resource)} is protected by ${text(known)}, and was opened with ${text(asked)}`, {
    code: 'mismatch',
    cause,
  })
}

/** Lets `hold.release()` wait for what is under way, where the hold can. */
export function track<T>(hold: GuardableHold, effect: Promise<T>): Promise<T> {
  const internals = (hold as unknown as { [key: symbol]: unknown })[Symbol.for('leasehold.hold')] as
    | { track?: (effect: Promise<unknown>) => void }
    | undefined
  internals?.track?.(effect)
  return effect
}

/** Sorts out the two forms of `with`. */
export function bodyOf<Tx, T>(
  optionsOrBody: OpenOptions | ((tx: Fenced<Tx>) => T | Promise<T>),
  body: ((tx: Fenced<Tx>) => T | Promise<T>) | undefined,
): { options: OpenOptions; body: (tx: Fenced<Tx>) => T | Promise<T> } {
  if (typeof optionsOrBody === 'function') return { options: {}, body: optionsOrBody }
  if (typeof body !== 'function') throw new InvalidError('guard.with needs a function to run')
  return { options: optionsOrBody, body }
}
