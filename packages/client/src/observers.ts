import type { Hold } from './hold/hold.js'
import { defaultPlatform, processWide } from './platform.js'

/**
 * What can be observed. `acquire`: a call, from beginning to end. `wait`: its time at the service, once it has a session.
 * `hold`: from the grant to its end. `renew`: one attempt. `release`: until the service has confirmed. `guard`: one guarded
 * effect.
 */
export type ObservedKind = 'acquire' | 'wait' | 'hold' | 'renew' | 'release' | 'guard'

/** What begins. Names of acquires and waits carry the client's namespace. */
export type Begun =
  | {
      readonly kind: 'acquire'
      /** The same object in an acquire and in its waits. */
      readonly call: object
      readonly names: readonly string[]
      readonly ttlMs: number
      readonly waitMs: number
    }
  | { readonly kind: 'wait'; readonly call: object; readonly names: readonly string[]; readonly waitMs: number }
  | { readonly kind: 'hold'; readonly hold: Hold }
  /** `lagMs`: how much later than planned the attempt is sent. `holds`: how many live in the session. */
  | { readonly kind: 'renew'; readonly session: bigint; readonly holds: number; readonly lagMs: number }
  | { readonly kind: 'release'; readonly hold: Hold }
  /** `hold` is what the guard was given, which need not be a `Hold` of this client. */
  | { readonly kind: 'guard'; readonly names: readonly string[]; readonly hold: object }

/** How it ended. */
export interface Ended {
  /** Why it failed: a `LeaseholdError`, or whatever a guarded body has thrown. Of a hold: its `HoldLostError`. */
  readonly error?: unknown
  /** Of an acquire that succeeded. */
  readonly hold?: Hold
  /** Of a release: false if the hold was gone already. */
  readonly released?: boolean
  /**
   * Of a hold that the service has ended (it expired, was stolen, …) while it was believed to be held here: the time since
   * the last acknowledged renewal was sent. The belief was wrong for at most so long.
   */
  readonly overlapMaxMs?: number
}

/** Observes what a client does. It must be quick and is never awaited; its errors are reported and change nothing. */
export interface Observer {
  /** Called before every `begin`, so that an observer without an audience costs nothing. */
  wants(kind: ObservedKind): boolean
  /** Called at a beginning; the returned function is called once, at the end. Runs in the async context of the caller. */
  begin(begun: Begun): (ended: Ended) => void
}

export type End = (ended: Ended) => void

/** The key of the process-wide list, for packages that may not import this one. */
const OBSERVERS = Symbol.for('leasehold.observers')

/** Registered observers at the same time; more means that a caller adds them in a loop. */
const OBSERVERS_MAX = 16

const observers = (processWide[OBSERVERS] as Observer[] | undefined) ?? []
processWide[OBSERVERS] = observers

/**
 * Adds an observer of all clients and guards of this process. Returns a function that removes it.
 * @throws RangeError when there are too many
 * @example
 * const off = addObserver({ wants: (kind) => kind === 'hold', begin: ({ kind }) => ({ error }) => console.log(kind, error) })
 */
export function addObserver(observer: Observer): () => void {
  if (observers.length >= OBSERVERS_MAX) {
    throw new RangeError(`there are ${OBSERVERS_MAX} observers already: remove those that are no longer needed`)
  }
  observers.push(observer)
  return () => {
    const at = observers.indexOf(observer)
    if (at >= 0) observers.splice(at, 1)
  }
}

/** Whether any observer wants this kind. Callers that must prepare what they report check this first. */
export function isObserved(kind: ObservedKind): boolean {
  for (const observer of observers) {
    try {
      if (observer.wants(kind)) return true
    } catch (error) {
      report(error)
    }
  }
  return false
}

/** Reports a beginning to the observers. Undefined without observers of it, at the cost of one comparison. */
export function begin(kind: ObservedKind, describe: () => Begun): End | undefined {
  return observers.length === 0 ? undefined : told(kind, describe)
}

function told(kind: ObservedKind, describe: () => Begun): End | undefined {
  let begun: Begun | undefined
  let ends: End[] | undefined
  for (const observer of observers) {
    try {
      if (!observer.wants(kind)) continue
      begun ??= describe()
      const end = observer.begin(begun)
      if (ends === undefined) ends = [end]
      else ends.push(end)
    } catch (error) {
      report(error)
    }
  }
  return ends === undefined ? undefined : (ended) => tellEnd(ends, ended)
}

function tellEnd(ends: readonly End[], ended: Ended): void {
  for (const end of ends) {
    try {
      end(ended)
    } catch (error) {
      report(error)
    }
  }
}

const report = (error: unknown) => defaultPlatform.report('leasehold: an observer has thrown', error)

/** Runs `work` between `begin` and its end. */
export function observed<T>(end: End | undefined, work: Promise<T>, outcome: (value: T) => Ended): Promise<T> {
  return end === undefined ? work : untilEnded(end, work, outcome)
}

async function untilEnded<T>(end: End, work: Promise<T>, outcome: (value: T) => Ended): Promise<T> {
  try {
    const value = await work
    end(outcome(value))
    return value
  } catch (error) {
    end({ error })
    throw error
  }
}
