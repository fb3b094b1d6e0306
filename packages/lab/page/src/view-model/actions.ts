import type { ClockName } from '@leasehold/lab/world/index'

/** What a visitor does to the world. Plain data, so that a run can be repeated from its address. */
export type Action =
  | { readonly do: 'pause' | 'resume' | 'pauseInWrite' | 'kill' | 'start' | 'isolate' | 'rejoin'; readonly who: string }
  | { readonly do: 'cut' | 'heal'; readonly who: string; readonly to: string }
  | { readonly do: 'stepClock'; readonly who: string; readonly clock: ClockName; readonly by: number }
  | { readonly do: 'drift'; readonly who: string; readonly ppm: number }
  | { readonly do: 'loseRenewals' | 'auto'; readonly who: string; readonly on: boolean }
  | { readonly do: 'holdWrite'; readonly who: string; readonly for: number }
  | { readonly do: 'take' | 'write' | 'release' | 'unit'; readonly who: string }

/** An action, and the microsecond of the world at which it was done. */
export interface TimedAction {
  readonly atUs: number
  readonly action: Action
}

type Check = (value: unknown) => boolean
const isText: Check = (value) => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isSeconds: Check = (value) => Number.isFinite(value) && Math.abs(value as number) <= SECONDS_MAX
const isPpm: Check = (value) => Number.isInteger(value) && Math.abs(value as number) <= PPM_MAX
const isClock: Check = (value) => value === 'wall' || value === 'monotonic' || value === 'boot'

const SECONDS_MAX = 100_000
const PPM_MAX = 500_000
/** Fields of each action, beside `do` and `who`. */
const FIELDS: Readonly<Record<Action['do'], Readonly<Record<string, Check>>>> = {
  pause: {},
  resume: {},
  pauseInWrite: {},
  kill: {},
  start: {},
  isolate: {},
  rejoin: {},
  cut: { to: isText },
  heal: { to: isText },
  stepClock: { clock: isClock, by: isSeconds },
  drift: { ppm: isPpm },
  loseRenewals: { on: isFlag },
  auto: { on: isFlag },
  holdWrite: { for: (value) => isSeconds(value) && (value as number) >= 0 },
  take: {},
  write: {},
  release: {},
  unit: {},
}
const ACTIONS_MAX = 500

/** Deeds as text for an address. */
export function actionsText(actions: readonly TimedAction[]): string {
  return JSON.stringify(actions.map(({ atUs, action }) => [atUs, action]))
}

/** Reads such a text; undefined when it is none. Names are looked up when they are used. */
export function parseActions(text: string): TimedAction[] | undefined {
  let rows: unknown
  try {
    rows = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!Array.isArray(rows) || rows.length > ACTIONS_MAX) return undefined
  const actions: TimedAction[] = []
  for (const row of rows as unknown[]) {
    if (!Array.isArray(row)) return undefined
    const [atUs, action] = row as [unknown, Record<string, unknown> | null]
    if (!Number.isSafeInteger(atUs) || typeof action !== 'object' || action === null) return undefined
    if (!isText(action.who) || !Object.hasOwn(FIELDS, String(action.do))) return undefined
    const fields = FIELDS[action.do as Action['do']]
    if (!Object.entries(fields).every(([field, check]) => check(action[field]))) return undefined
    actions.push({ atUs: atUs as number, action: action as unknown as Action })
  }
  return actions.sort((a, b) => a.atUs - b.atUs)
}
