import { covers } from './names.js'
import type { Event, QueryResult } from './operations.js'

/** Whether an event concerns a name that the prefix covers. Sessions have no name: only the empty prefix matches them. */
export function matchesPrefix(prefix: string, event: Event): boolean {
  if (prefix === '') return true
  switch (event.kind) {
    case 'held':
      return event.grant.locks.some((lock) => covers(prefix, lock.name))
    case 'freed':
      return event.locks.some((lock) => covers(prefix, lock.name))
    case 'queued':
    case 'unqueued':
      return event.names.some((name) => covers(prefix, name))
    case 'put':
    case 'deleted':
      return covers(prefix, event.key)
    case 'sessionOpened':
    case 'sessionEnded':
      return false
  }
}

/** Whether the reader may see a name. */
export type MayRead = (name: string) => boolean

/** Removes the names that the reader may not see from an event of several locks. */
export function redactEvent(event: Event, mayRead: MayRead): Event {
  switch (event.kind) {
    case 'held':
      return { ...event, grant: { ...event.grant, locks: event.grant.locks.filter(({ name }) => mayRead(name)) } }
    case 'freed':
      return { ...event, locks: event.locks.filter(({ name }) => mayRead(name)) }
    case 'queued':
    case 'unqueued':
      return { ...event, names: event.names.filter(mayRead) }
    default:
      return event
  }
}

/** Removes the names that the reader may not see from holds and waiters, and those that have none left. */
export function redactQuery(result: QueryResult, mayRead: MayRead): QueryResult {
  const rows = <T extends { readonly locks: readonly { readonly name: string }[] }>(all: readonly T[]): T[] =>
    all
      .map((row) => ({ ...row, locks: row.locks.filter(({ name }) => mayRead(name)) }))
      .filter(({ locks }) => locks.length > 0)
  return { ...result, held: rows(result.held), pending: rows(result.pending) }
}
