import type { HeldLock } from '../api/types.js'

/** An event of the service, with when it came here. */
export interface Seen {
  readonly number: number
  readonly kind: string
  readonly cursor: string
  /** Date.now() when it came. */
  readonly at: number
  readonly data: EventData
}

/** The fields of all kinds; each kind has some of them. */
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

/** What an event is about: names of locks, a register, a session. */
export function subjects({ data }: Seen): readonly string[] {
  if (data.locks !== undefined) return data.locks.map((lock) => lock.name)
  if (data.names !== undefined) return data.names
  return data.key === undefined ? [] : [data.key]
}

/** One grant of a lock, as far as this page has seen it. */
export interface GrantSeen {
  readonly hold: string
  readonly token: string
  readonly client: string
  /** Date.now() of the grant; undefined: before this page listened. */
  readonly from: number | undefined
  readonly to: number | undefined
  /** Why it ended; undefined while it lasts. */
  readonly end: string | undefined
  readonly by: string
}

/** What was said of a hold when its grant was not seen. */
export interface HeldBefore {
  readonly hold: string
  readonly token: string
  readonly client: string
  /** Date.now() of the grant, from its age. */
  readonly from: number
}

/**
 * The grants of one lock, newest first. `events` in the order in which they came; `before`: holds of the lock that were
 * there when the page came to it.
 */
export function grantsOf(name: string, events: readonly Seen[], before: readonly HeldBefore[] = []): GrantSeen[] {
  const grants = new Map<string, GrantSeen>(
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

/** Keeps the newest `most`. */
export function appended<T>(list: readonly T[], more: readonly T[], most: number): readonly T[] {
  const all = [...list, ...more]
  return all.length > most ? all.slice(all.length - most) : all
}

/** An event in words, without its subject. */
export function eventText({ kind, data }: Seen): string {
  switch (kind) {
    case 'held':
      return `held by ${data.client || `session ${data.session}`} with token ${data.locks?.[0]?.token ?? '?'}`
    case 'freed':
      return `${data.reason}${data.actor ? ` by ${data.actor}` : ''}${data.text ? `: ${data.text}` : ''}`
    case 'queued':
      return `session ${data.session} waits`
    case 'unqueued':
      return `session ${data.session} waits no longer: ${data.reason}`
    case 'sessionOpened':
      return `${data.client || 'a client'} opened session ${data.session}`
    case 'sessionEnded':
      return `session ${data.session} ended: ${data.reason}`
    case 'put':
      return `written, version ${data.version}`
    case 'deleted':
      return `deleted at version ${data.version}`
    case 'gap':
      return 'events are missing here: they came while nobody listened'
    case 'epoch-changed':
      return 'the service went on in another epoch: every hold before has ended'
    default:
      return data.detail ?? ''
  }
}
