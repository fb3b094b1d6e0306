import type { DelayRow, HeldRow, LocksView, Mode, PendingRow, SessionRow } from 'leasehold'

/** Bound on the pages of one listing. Beyond it, the user is told to give a prefix. */
const PAGES_MAX = 100
const PAGE_ROWS = 1000

/** The result of a query over all its pages. */
export interface Listing {
  readonly held: readonly HeldRow[]
  readonly pending: readonly PendingRow[]
  readonly delays: readonly DelayRow[]
  readonly sessions: readonly SessionRow[]
  /** The listing is incomplete: there are more rows than its bound. */
  readonly more: boolean
  /** The cursor of a watch that misses no event since the first page. */
  readonly at: string
}

/** The part of the client that a listing needs. */
export interface Queries {
  query(options: { prefix?: string; name?: string; limit?: number; cursor?: string }): Promise<LocksView>
}

/** Reads all pages of a query. Each page is a consistent snapshot; all pages together are not. */
export async function listing(locks: Queries, query: { prefix?: string; name?: string }): Promise<Listing> {
  const held: HeldRow[] = []
  const pending: PendingRow[] = []
  let delays: readonly DelayRow[] = []
  const sessions = new Map<bigint, SessionRow>()
  let cursor: string | undefined
  let at = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const view: LocksView = await locks.query({
      ...query,
      limit: PAGE_ROWS,
      ...(cursor === undefined ? {} : { cursor }),
    })
    held.push(...view.held)
    pending.push(...view.pending)
    if (page === 0) ({ delays, at } = view)
    for (const session of view.sessions) sessions.set(session.id, session)
    cursor = view.next
    if (cursor === undefined) break
  }
  return { held, pending, delays, sessions: [...sessions.values()], more: cursor !== undefined, at }
}

/** Returns what is left of `ms` after `agoMs`, at least 0. */
export function after(ms: number, agoMs: number): number {
  return Math.max(0, ms - agoMs)
}

export function modeText(mode: Mode): string {
  return typeof mode === 'string' ? mode : `permit of ${mode.permits}`
}

/** Decodes owner data as UTF-8. */
export function dataText(data: Uint8Array): string {
  return Buffer.from(data).toString('utf8')
}

export function heldJson(row: HeldRow): Record<string, unknown> {
  const { data, ...rest } = row
  return { ...rest, session: row.session ?? null, remainingMs: row.remainingMs ?? null, data: dataText(data) }
}

/** Formats a waiter as JSON. `remainingMs` is null for an unlimited wait. */
export function pendingJson(row: PendingRow): Record<string, unknown> {
  return { ...row, remainingMs: row.remainingMs ?? null }
}
