import type { DelayRow, HeldRow, LocksView, Mode, PendingRow, SessionRow } from 'leasehold'

/** Pages of one listing; a service with more says so and asks for a prefix. */
const PAGES_MAX = 100
const PAGE_ROWS = 1000

/** A listing over all its pages. */
export interface Listing {
  readonly held: readonly HeldRow[]
  readonly pending: readonly PendingRow[]
  readonly delays: readonly DelayRow[]
  readonly sessions: readonly SessionRow[]
  /** Rows were left out: there are more than a listing shows. */
  readonly more: boolean
  /** A watch from here on misses nothing of what comes after the first page. */
  readonly at: string
}

/** What a listing asks of the client. */
export interface Queries {
  query(options: { prefix?: string; name?: string; limit?: number; cursor?: string }): Promise<LocksView>
}

/** Reads all pages of a query. Each page is one consistent picture, the pages together are not. */
export async function listing(locks: Queries, query: { prefix?: string; name?: string }): Promise<Listing> {
  const held: HeldRow[] = []
  const pending: PendingRow[] = []
  let delays: readonly DelayRow[] = []
  const sessions = new Map<bigint, SessionRow>()
  let cursor: string | undefined
  let at = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer: LocksView = await locks.query({
      ...query,
      limit: PAGE_ROWS,
      ...(cursor === undefined ? {} : { cursor }),
    })
    held.push(...answer.held)
    pending.push(...answer.pending)
    if (page === 0) ({ delays, at } = answer)
    for (const session of answer.sessions) sessions.set(session.id, session)
    cursor = answer.next
    if (cursor === undefined) break
  }
  return { held, pending, delays, sessions: [...sessions.values()], more: cursor !== undefined, at }
}

/** What is left of a time after `agoMs`; a lease that has run out is not negative. */
export function after(ms: number, agoMs: number): number {
  return Math.max(0, ms - agoMs)
}

export function modeText(mode: Mode): string {
  return typeof mode === 'string' ? mode : `permit of ${mode.permits}`
}

/** Owner data as text where it is text. */
export function dataText(data: Uint8Array): string {
  return Buffer.from(data).toString('utf8')
}

export function heldJson(row: HeldRow): Record<string, unknown> {
  const { data, ...rest } = row
  return { ...rest, session: row.session ?? null, remainingMs: row.remainingMs ?? null, data: dataText(data) }
}

/** Waits without end are an unlimited number of milliseconds, which JSON does not have. */
export function pendingJson(row: PendingRow): Record<string, unknown> {
  return { ...row, remainingMs: row.remainingMs ?? null }
}
