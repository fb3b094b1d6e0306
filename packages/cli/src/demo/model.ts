/** The source of an event in the demo. */
export type Actor = 'A' | 'B' | 'demo'

/** The reports of a worker, as JSON lines on its stdout. */
export type Report =
  /** The worker has a session, and waits for its `begin` file. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'held'; readonly token: string }
  | { readonly kind: 'read'; readonly value: number }
  /** The worker has checked that its lease is valid, and is about to send its write. */
  | { readonly kind: 'sending'; readonly value: number }
  | { readonly kind: 'wrote'; readonly value: number }
  /** `mark`: the greater token that the resource has seen. */
  | { readonly kind: 'refused'; readonly error: string; readonly message: string; readonly mark: string | null }
  | { readonly kind: 'released' }
  | { readonly kind: 'failed'; readonly error: string; readonly message: string }

export type DemoEvent =
  | Report
  | { readonly kind: 'started' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'continued' }

export interface TimedEvent {
  readonly atMs: number
  readonly actor: Actor
  readonly what: DemoEvent
}

/** The result of one half of the demo: the same scenario, without or with a guard. */
export interface Half {
  readonly guarded: boolean
  readonly events: readonly TimedEvent[]
  readonly leaseMs: number
  readonly before: number
  /** The record at the end, and its value if no update is lost. */
  readonly record: number
  readonly right: number
  readonly tokens: { readonly A: string; readonly B: string }
  /** The error with which A's late write was refused; undefined if it was accepted. */
  readonly refused: string | undefined
  readonly asExpected: boolean
}

/** The task of a worker, its command line argument as JSON. */
export interface WorkerTask {
  readonly actor: 'A' | 'B'
  readonly url: string
  readonly lock: string
  readonly ttlMs: number
  readonly amount: number
  readonly guarded: boolean
  readonly store: StorePlace
  /** The worker waits before its write until this file exists; it is stopped there. Undefined: it does not wait. */
  readonly gate: string | undefined
  /** The worker opens its session, and acquires its lock once this file exists. Undefined: at once. */
  readonly begin: string | undefined
}

/** The location of the record. */
export type StorePlace =
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'pg'; readonly url: string; readonly schema: string }
