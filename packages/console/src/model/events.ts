import type { HeldLock } from '../api/types.js'

/** An event of the service, with the time when the page received it. */
export interface SeenEvent {
  readonly number: number
  readonly kind: string
  readonly cursor: string
  /** Date.now() when it was received. */
  readonly at: number
  readonly data: EventData
}

/** The fields of all kinds of events; each kind has some of them. */
export interface EventData {
  readonly hold?: string
  readonly locks?: readonly HeldLock[]
  readonly names?: readonly string[]
  readonly session?: string
  readonly request?: number
  readonly client?: string
  readonly reason?: string
  readonly actor?: string
  readonly text?: string
  readonly key?: string
  readonly version?: string
  readonly detail?: string
}

/** The subjects of an event: names of locks, or the key of a register. */
export function subjects({ data }: SeenEvent): readonly string[] {
  if (data.locks !== undefined) return data.locks.map((lock) => lock.name)
  if (data.names !== undefined) return data.names
  return data.key === undefined ? [] : [data.key]
}

/** One grant of a lock, as far as this page observed it. */
export interface ObservedGrant {
  readonly hold: string
  readonly token: string
  readonly client: string
  /** Date.now() of the grant; undefined if it was before this page listened. */
  readonly from: number | undefined
  readonly to: number | undefined
  /** Why it ended; undefined while it is held. */
  readonly end: string | undefined
  readonly by: string
}

/** A hold that was granted before the page listened. */
export interface EarlierHold {
  readonly hold: string
  readonly token: string
  readonly client: string
  /** Date.now() of the grant, from its age. */
  readonly from: number
}

/**
 * The grants of one lock, newest first. `events` are in the order of their arrival; `before` are the holds of the lock that
 * existed when the page was opened.
 */
export function grantsOf(
  name: string,
  events: readonly SeenEvent[],
  before: readonly EarlierHold[] = [],
): ObservedGrant[] {
  const grants = new Map<string, ObservedGrant>(
    before.map((one) => [one.hold, { ...one, to: undefined, end: undefined, by: '' }]),
  )
  for (const { kind, at, data } of events) {
    const lock = data.locks?.find((one) => one.name === name)
    if (lock === undefined || data.hold === undefined) continue
    const { hold } = data
    const known = grants.get(hold)
    if (kind === 'held') {
      grants.delete(hold)
      grants.set(hold, {
        hold,
        token: lock.token,
        client: data.client ?? '',
        from: at,
        to: undefined,
        end: undefined,
        by: '',
      })
    } else if (kind === 'freed') {
      const by = [data.actor, data.text].filter((part) => part !== undefined && part !== '').join(': ')
      const start = known ?? { hold, token: lock.token, client: '', from: undefined }
      grants.set(hold, { ...start, to: at, end: data.reason ?? 'ended', by })
    }
  }
  return [...grants.values()].reverse()
}

/** Appends, and keeps the newest `most` elements. */
export function appendBounded<T>(list: readonly T[], more: readonly T[], most: number): readonly T[] {
  const all = [...list, ...more]
  return all.length > most ? all.slice(all.length - most) : all
}

/** Describes an event without its subject. */
export function eventText({ kind, data }: SeenEvent): string {
  switch (kind) {
    case 'held':
      return `held by ${data.client || `session ${data.session}`} with token ${data.locks?.[0]?.token ?? '?'}`
    case 'freed':
      return `${data.reason}${data.actor ? ` by ${data.actor}` : ''}${data.text ? `: ${data.text}` : ''}`
    case 'queued':
      return `session ${data.session} is waiting`
    case 'unqueued':
      return `session ${data.session} stopped waiting: ${data.reason}`
    case 'sessionOpened':
      return `${data.client || 'a client'} opened session ${data.session}`
    case 'sessionEnded':
      return `session ${data.session} ended: ${data.reason}`
    case 'put':
      return `written, version ${data.version}`
    case 'deleted':
      return `deleted at version ${data.version}`
    case 'gap':
      return 'events are missing here: they occurred while the page was not listening'
    case 'epoch-changed':
      return 'the service was restored into another epoch: all earlier holds have ended'
    default:
      return data.detail ?? ''
  }
}
