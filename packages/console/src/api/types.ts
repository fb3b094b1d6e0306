/* The responses of the service, as far as the console shows them. Ids, tokens and versions are decimal strings. */

export type Mode = 'exclusive' | 'shared' | { readonly permits: number }

export interface HeldLock {
  readonly name: string
  readonly mode: Mode
  readonly token: string
  readonly slot?: number
}

export interface Held {
  readonly hold: string
  readonly locks: readonly HeldLock[]
  readonly session: string | null
  readonly client: string
  readonly persistent: boolean
  readonly ageMs: number
  readonly remainingMs: number | null
  readonly data?: string
  readonly dataBase64?: string
}

export interface Pending {
  readonly session: string
  readonly request: number
  readonly client: string
  readonly locks: readonly { readonly name: string; readonly mode: Mode }[]
  readonly waitingMs: number
  readonly remainingMs: number | null
}

export interface Delay {
  readonly name: string
  readonly mode: Mode
  readonly slot?: number
  readonly remainingMs: number
}

export interface Session {
  readonly session: string
  readonly client: string
  readonly ttlMs: number
  readonly remainingMs: number
  readonly holds: number
  readonly waiters: number
}

interface CommonFields {
  readonly cluster: string
  readonly epoch: number
}

export interface LocksResponse extends CommonFields {
  readonly held: readonly Held[]
  readonly pending: readonly Pending[]
  readonly delays: readonly Delay[]
  readonly sessions: readonly Session[]
  readonly next: string | null
  /** A watch from this cursor delivers everything after this response. */
  readonly at: string
}

export interface RegisterInfo {
  readonly key: string
  readonly version: string
  readonly lock?: string
  readonly bytes: number
}

export interface RegistersResponse extends CommonFields {
  readonly registers: readonly RegisterInfo[]
  readonly next: string | null
}

export interface RegisterResponse extends CommonFields {
  readonly key: string
  readonly version: string
  readonly lock?: string
  readonly value: unknown
  readonly encoding: 'json' | 'text' | 'base64'
}

export type Role = 'leader' | 'follower' | 'candidate' | 'learner' | 'stopped'

export interface ClusterResponse extends CommonFields {
  readonly member: string
  readonly role: Role
  /** Name of the leader that this member knows; '' without one. */
  readonly leader: string
  readonly leaderUrl: string
  readonly url: string
  readonly term: number
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly disk: 'ok' | 'full'
  readonly failure?: string
  readonly members?: readonly {
    readonly name: string
    readonly url: string
    readonly peer: string
    readonly role: 'voter' | 'learner'
    /** Only known to the leader. */
    readonly matchIndex?: number
  }[]
}

/** An error response of the service. */
export interface Problem {
  readonly status: number
  readonly code: string
  readonly title: string
  readonly detail: string
  readonly hint?: string
}
