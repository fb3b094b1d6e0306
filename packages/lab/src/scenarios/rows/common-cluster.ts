import type { Step } from '../format.js'

/** Nothing is broken. */
export const QUIET = { violations: [] } as const
/** Any time from second 0 on. */
export const ANY = { atLeast: 0 } as const

export const ETCD = 'https://github.com/etcd-io/etcd/issues'

/** The production cluster. */
export function cluster(more: Record<string, unknown> = {}): { kind: string; [option: string]: unknown } {
  return { kind: 'cluster', ...more }
}

/** Takes a lock (L) and keeps it until `until`, then looks at its state and gives it back. */
export function keeper(until: number, take: Record<string, unknown> = {}): Step[] {
  return [
    { do: 'client', action: 'take', ...take },
    { do: 'wait', until },
    { do: 'client', action: 'state' },
    { do: 'client', action: 'give' },
  ]
}

/** Wants a lock (L) from `from` on. */
export function next(from: number, take: Record<string, unknown> = {}): Step[] {
  return [
    { do: 'wait', until: from },
    { do: 'client', action: 'take', wait: '2m', ...take },
  ]
}

/** What a keeper tells that has never lost its hold. */
export const KEPT = {
  take: { outcome: 'granted' },
  state: { state: 'held' },
  give: { released: true },
  losses: 0,
} as const
