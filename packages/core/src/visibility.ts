import { covers } from './names.js'
import type { Event, QueryResult } from './operations.js'

/** Whether an event concerns something below the prefix. Sessions have no name: only the empty prefix shows them. */
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

/** Whether a name may be told to the one who looks. */
export type MayRead = (name: string) => boolean

/** What is left of an event of several locks for one who may not read the names of all of them. */
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

/** The same of a query: holds and waiters of several locks are shown with those that the one who asks may read. */
export function redactQuery(result: QueryResult, mayRead: MayRead): QueryResult {
  const rows = <T extends { readonly locks: readonly { readonly name: string }[] }>(all: readonly T[]): T[] =>
    all
      .map((row) => ({ ...row, locks: row.locks.filter(({ name }) => mayRead(name)) }))
      .filter(({ locks }) => locks.length > 0)
  return { ...result, held: rows(result.held), pending: rows(result.pending) }
}
