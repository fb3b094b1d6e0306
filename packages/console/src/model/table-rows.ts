import type { HeldLock, LocksResponse, Mode } from '../api/types.js'
import type { MomentEstimates } from './moment-estimates.js'

/** A hold of one lock. Moments are on the local monotonic clock, in ms. */
export interface HoldRow {
  readonly hold: string
  readonly lock: HeldLock
  /** All locks of the hold. */
  readonly names: readonly string[]
  readonly session: string | null
  readonly client: string
  readonly persistent: boolean
  readonly since: number
  /** Undefined without a deadline. */
  readonly until: number | undefined
  readonly ttlMs: number | undefined
  readonly data: string
}

export interface WaiterRow {
  readonly key: string
  readonly session: string
  readonly client: string
  readonly mode: Mode
  readonly names: readonly string[]
  readonly since: number
  /** When it times out; undefined: never. */
  readonly until: number | undefined
}

export interface DelayRow {
  readonly mode: Mode
  readonly slot: number | undefined
  readonly until: number
}

export interface SessionRow {
  readonly session: string
  readonly client: string
  readonly ttlMs: number
  readonly until: number
  readonly holds: number
  readonly waiters: number
}

export interface LockRow {
  readonly name: string
  readonly holds: readonly HoldRow[]
  readonly queue: readonly WaiterRow[]
  readonly delays: readonly DelayRow[]
}

/** One response, arranged for the pages. */
export interface LocksSnapshot {
  readonly locks: readonly LockRow[]
  readonly sessions: readonly SessionRow[]
  readonly holds: number
  readonly waiters: number
  /** Whether the service has more than this response contains. */
  readonly partial: boolean
  readonly cluster: string
  readonly epoch: number
}

interface MutableLockRow {
  name: string
  holds: HoldRow[]
  queue: WaiterRow[]
  delays: DelayRow[]
}

/** Arranges a response that was received at `now`. */
export function arrange(answer: LocksResponse, now: number, estimates: MomentEstimates): LocksSnapshot {
  const locks = new Map<string, MutableLockRow>()
  const of = (name: string): MutableLockRow => {
    const known = locks.get(name) ?? { name, holds: [], queue: [], delays: [] }
    locks.set(name, known)
    return known
  }
  const ttls = new Map(answer.sessions.map((one) => [one.session, one.ttlMs]))
  const moment = (key: string, remaining: number | null) =>
    remaining === null ? undefined : estimates.update(key, now + remaining)
  for (const one of answer.held) {
    const since = estimates.update(`since ${one.hold}`, now - one.ageMs)
    const until = moment(`until ${one.hold}`, one.remainingMs)
    const names = one.locks.map((lock) => lock.name)
    const { hold, session, client, persistent } = one
    const ttlMs = session === null ? undefined : ttls.get(session)
    const data = one.data ?? (one.dataBase64 === undefined ? '' : `base64: ${one.dataBase64}`)
    for (const lock of one.locks) {
      of(lock.name).holds.push({ hold, lock, names, session, client, persistent, since, until, ttlMs, data })
    }
  }
  for (const one of answer.pending) {
    const key = `${one.session}/${one.request}`
    const since = estimates.update(`queued ${key}`, now - one.waitingMs)
    const until = moment(`times out ${key}`, one.remainingMs)
    const names = one.locks.map((lock) => lock.name)
    const { session, client } = one
    for (const { name, mode } of one.locks) of(name).queue.push({ key, session, client, mode, names, since, until })
  }
  for (const { name, mode, slot, remainingMs } of answer.delays) {
    of(name).delays.push({ mode, slot, until: now + remainingMs })
  }
  const sessions = answer.sessions.map(({ session, client, ttlMs, remainingMs, holds, waiters }) => {
    const until = estimates.update(`session ${session}`, now + remainingMs)
    return { session, client, ttlMs, until, holds, waiters }
  })
  estimates.end()
  return {
    locks: [...locks.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    sessions,
    holds: answer.held.length,
    waiters: answer.pending.length,
    partial: answer.next !== null,
    cluster: answer.cluster,
    epoch: answer.epoch,
  }
}

/**
 * The prefix for which a search text queries the service: the path before its last slash, in whole segments; '' without a
 * slash. The remaining text filters the response.
 */
export function prefixOf(search: string): string {
  const text = search.trim()
  return text.slice(0, Math.max(0, text.lastIndexOf('/')))
}

/** Whether a lock's name, holders, waiters or tokens contain the text; with a slash, only names that begin with it. */
export function matches(row: LockRow, search: string): boolean {
  const text = search.trim().toLowerCase()
  if (text.includes('/')) return `${row.name.toLowerCase()}/`.startsWith(text)
  const has = (value: string | null) => value?.toLowerCase().includes(text) ?? false
  return (
    has(row.name) ||
    row.holds.some((hold) => has(hold.client) || has(hold.lock.token) || has(hold.session)) ||
    row.queue.some((waiter) => has(waiter.client))
  )
}

/** What kind of lock this is, and how full, in a few words. */
export function kindOf(row: LockRow): string {
  const mode = row.holds[0]?.lock.mode ?? row.queue[0]?.mode ?? row.delays[0]?.mode ?? 'exclusive'
  if (typeof mode === 'object') return `${row.holds.length} of ${mode.permits} permits`
  if (row.holds.length === 0) return row.delays.length > 0 ? 'delayed' : 'free'
  return mode === 'shared' ? `shared by ${row.holds.length}` : 'exclusive'
}

export function modeText(mode: Mode, slot?: number): string {
  if (typeof mode !== 'object') return mode
  return slot === undefined ? `1 of ${mode.permits} permits` : `permit ${slot} of ${mode.permits}`
}
