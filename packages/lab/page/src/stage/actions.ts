import type { ClockName } from '@leasehold/lab/world/index'

/** What somebody does to the world. Plain data, so that a run can be done again from its address. */
export type Action =
  | { readonly do: 'pause' | 'resume' | 'pauseInWrite' | 'kill' | 'start' | 'isolate' | 'rejoin'; readonly who: string }
  | { readonly do: 'cut' | 'heal'; readonly who: string; readonly to: string }
  | { readonly do: 'stepClock'; readonly who: string; readonly clock: ClockName; readonly by: number }
  | { readonly do: 'drift'; readonly who: string; readonly ppm: number }
  | { readonly do: 'loseRenewals' | 'auto'; readonly who: string; readonly on: boolean }
  | { readonly do: 'holdWrite'; readonly who: string; readonly for: number }
  | { readonly do: 'take' | 'write' | 'release' | 'unit'; readonly who: string }

/** An action, and the microsecond of the world at which it was done. */
export interface Deed {
  readonly atUs: number
  readonly action: Action
}

const WITH_TO = new Set(['cut', 'heal'])
const KINDS = new Set([
  ...['pause', 'resume', 'pauseInWrite', 'kill', 'start', 'isolate', 'rejoin', 'cut', 'heal', 'stepClock', 'drift'],
  ...['loseRenewals', 'auto', 'holdWrite', 'take', 'write', 'release', 'unit'],
])
const DEEDS_MAX = 500

/** Deeds as text for an address. */
export function deedsText(deeds: readonly Deed[]): string {
  return JSON.stringify(deeds.map(({ atUs, action }) => [atUs, action]))
}

/** Reads such a text; undefined when it is none. Names are checked when they are used. */
export function parseDeeds(text: string): Deed[] | undefined {
  let rows: unknown
  try {
    rows = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!Array.isArray(rows) || rows.length > DEEDS_MAX) return undefined
  const deeds: Deed[] = []
  for (const row of rows as unknown[]) {
    if (!Array.isArray(row)) return undefined
    const [atUs, action] = row as [unknown, Record<string, unknown> | null]
    if (!Number.isSafeInteger(atUs) || typeof action !== 'object' || action === null) return undefined
    if (typeof action.who !== 'string' || !KINDS.has(String(action.do))) return undefined
    if (WITH_TO.has(String(action.do)) && typeof action.to !== 'string') return undefined
    deeds.push({ atUs: atUs as number, action: action as Action })
  }
  return deeds.sort((a, b) => a.atUs - b.atUs)
}
