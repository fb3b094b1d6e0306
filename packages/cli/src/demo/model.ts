/** Who does something in the demo. */
export type Actor = 'A' | 'B' | 'demo'

/** What a worker reports, as JSON lines on its stdout. */
export type Report =
  /** The worker has a session, and waits until it may begin. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'held'; readonly token: string }
  | { readonly kind: 'read'; readonly value: number }
  /** The worker has looked at its lease, found it good, and is about to send its write. */
  | { readonly kind: 'sending'; readonly value: number }
  | { readonly kind: 'wrote'; readonly value: number }
  /** `mark`: the later token that the resource has seen. */
  | { readonly kind: 'refused'; readonly error: string; readonly message: string; readonly mark: string | null }
  | { readonly kind: 'released' }
  | { readonly kind: 'failed'; readonly error: string; readonly message: string }

export type Happening =
  | Report
  | { readonly kind: 'started' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'continued' }

export interface Moment {
  readonly atMs: number
  readonly actor: Actor
  readonly what: Happening
}

/** One half of the demo: the same story, without or with a guard. */
export interface Half {
  readonly guarded: boolean
  readonly moments: readonly Moment[]
  readonly leaseMs: number
  readonly before: number
  /** What the record says at the end, and what it would say if no update were lost. */
  readonly record: number
  readonly right: number
  readonly tokens: { readonly A: string; readonly B: string }
  /** A's late write was refused with this error; undefined: it was accepted. */
  readonly refused: string | undefined
  readonly asExpected: boolean
}

/** What a worker is told. */
export interface WorkerTask {
  readonly actor: 'A' | 'B'
  readonly url: string
  readonly lock: string
  readonly ttlMs: number
  readonly amount: number
  readonly guarded: boolean
  readonly store: StorePlace
  /** The worker waits in front of its write until this file exists; it is stopped there. Undefined: it does not wait. */
  readonly gate: string | undefined
  /** The worker opens its session, and takes its lock only once this file exists. Undefined: at once. */
  readonly begin: string | undefined
}

/** Where the record is. */
export type StorePlace =
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'pg'; readonly url: string; readonly schema: string }
