import type { Step } from '../format.js'

/** Kleppmann, "How to do distributed locking" (2016). */
export const ARTICLE = 'https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html'
/** Sanfilippo's answer (2016). */
export const ANSWER = 'http://antirez.com/news/101'
/** The algorithm as published, step by step. */
export const REDLOCK = 'https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/'

export type AcquireStep = Step & { readonly do: 'acquire' }

/** acquire → read → compute → write read + 1 → release. */
export function unit(
  options: {
    readonly from?: number
    readonly work?: number
    readonly acquire?: Omit<AcquireStep, 'do'>
    readonly check?: boolean
  } = {},
): Step[] {
  const { from, work, acquire, check } = options
  return [
    ...(from === undefined ? [] : [{ do: 'wait' as const, until: from }]),
    { do: 'acquire', ...acquire },
    { do: 'read' },
    ...(work === undefined ? [] : [{ do: 'work' as const, for: work }]),
    { do: 'write', ...(check === undefined ? {} : { check }) },
    { do: 'release' },
  ]
}

/** Nothing is broken. */
export const NO_VIOLATIONS = { violations: [] } as const
/** Any time from second 0 on. */
export const ANY_TIME = { atLeast: 0 } as const

export const ETCD = 'https://github.com/etcd-io/etcd/issues'

/** The production cluster. */
export function cluster(more: Record<string, unknown> = {}): { kind: string; [option: string]: unknown } {
  return { kind: 'cluster', ...more }
}

/** Takes a lock (L) and keeps it until `until`, then looks at its state and releases it. */
export function holdUntil(until: number, take: Record<string, unknown> = {}): Step[] {
  return [
    { do: 'client', action: 'take', ...take },
    { do: 'wait', until },
    { do: 'client', action: 'state' },
    { do: 'client', action: 'give' },
  ]
}

/** Wants a lock (L) from `from` on. */
export function acquireFrom(from: number, take: Record<string, unknown> = {}): Step[] {
  return [
    { do: 'wait', until: from },
    { do: 'client', action: 'take', wait: '2m', ...take },
  ]
}

/** What a keeper tells that has never lost its hold. */
export const KEPT_HOLD = {
  take: { outcome: 'granted' },
  state: { state: 'held' },
  give: { released: true },
  losses: 0,
} as const

/** Many small operations, so that the log grows. */
export const busy = (count: number, from = 0, hold = 0.005) =>
  [
    { do: 'wait', until: from },
    { do: 'client', action: 'loop', lock: 'busy', count, hold },
  ] as const
