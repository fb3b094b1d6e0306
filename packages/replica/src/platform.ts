/**
 * The four things that a member needs from the world. The server binds them to the machine (`node/`), the lab to its
 * simulated one. Nothing else in this package may touch the machine, so that the same code runs in both.
 * Completion is by callback, never by promise: in the lab the world decides the order of completions.
 * A callback never runs inside the call that was given it.
 */

/** Thrown by `create`, or handed to a callback, when the disk has no room. The file is left as it was, or absent. */
export class DiskFullError extends Error {
  constructor(file: string, options?: ErrorOptions) {
    super(`no space left on the disk for ${file}`, options)
    this.name = 'DiskFullError'
  }
}

export type Done = (error: Error | undefined) => void

/** An open file of the data folder. One write is in flight at a time; a second one is a programming error. */
export interface DiskFile {
  readonly name: string
  /** Writes `chunks` one after another from `offset`. With `sync`, `done` runs only after the data is durable (fdatasync). */
  write(offset: number, chunks: readonly Uint8Array[], sync: boolean, done: Done): void
  /**
   * The same, blocking, with sync: the shortest way while the disk is quick. Without chunks it only syncs what was written
   * before, by whatever process. Throws on failure.
   */
  writeSync(offset: number, chunks: readonly Uint8Array[]): void
  close(): void
}

/** What a check of the data folder finds. `facts` are for the log only. */
export type FolderState =
  | { readonly kind: 'own' }
  /** It is not at its path any more: deleted, renamed, unmounted, or replaced by another one. */
  | {
      readonly kind: 'lost'
      readonly why: string
      /** What to do, where it is not to bring the folder back. */
      readonly hint?: string
      readonly facts?: Record<string, unknown>
    }
  /** The device or the file server is gone; it may come back. */
  | { readonly kind: 'failing'; readonly why: string }
  /** The check itself did not work, which says nothing about the folder. */
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * One flat data folder. The calls that return at once are for start-up and for rare moments (roll, snapshot);
 * they block, and throw on failure. Names are plain file names.
 */
export interface Disk {
  /** A name for error messages, such as the folder's path. */
  readonly path: string
  /** Names of all files, sorted. */
  list(): string[]
  size(name: string): number
  /** The whole file, or the part from `offset` of `length` bytes. */
  read(name: string, offset?: number, length?: number): Uint8Array
  /** Opens an existing file for writing. */
  open(name: string): DiskFile
  /**
   * Creates a file of `size` bytes, all zero and really allocated (so that later writes inside it cannot fail for lack of
   * space), and syncs it. Reports {@link DiskFullError} and leaves no file behind when there is no room.
   */
  create(name: string, size: number, done: (error: Error | undefined, file?: DiskFile) => void): void
  /** Atomic; durable only after {@link Disk.syncFolder}. */
  rename(from: string, to: string): void
  remove(name: string): void
  /** Makes creations, renames and removals durable, and the folder itself: the names that lead to it. */
  syncFolder(): void
  /**
   * Checks, without ever blocking, that the folder at the path is still the one that was opened, and that `file` still has
   * a name. `done` may never run when the file system hangs. A disk that cannot be lost leaves it out.
   */
  check?(file: DiskFile | undefined, done: (state: FolderState) => void): void
}

/** A monotonic clock of whole milliseconds (fractions dropped), and one-shot timers on it. */
export interface Clock {
  monotonicMs(): number
  /** Milliseconds since 1970 by the wall clock, which may be wrong or step. Only floors of the counter use it. */
  wallMs(): number
  /** Runs `callback` once, not before `delayMs` have passed. Returns a function that takes it back. */
  after(delayMs: number, callback: () => void): () => void
}

/** Random bytes that nobody can guess: secrets, nonces, identities, election jitter. */
export interface Random {
  bytes(length: number): Uint8Array
  /** A whole number, 0 ≤ n < limit ≤ 2^32. */
  below(limit: number): number
}

/**
 * The way to the other members. Frames may be lost, doubled, delayed and swapped; a frame that arrives is whole.
 * `lane` keeps heartbeats and votes apart from bulk data, so that a large snapshot does not look like a dead leader.
 */
export interface Network {
  /** Hands a frame over for sending; drops it silently when the peer's bounded queue is full or the peer is away. */
  send(to: number, lane: 'control' | 'bulk', frame: Uint8Array): void
  /** Told once by the replica at its start. */
  receive(handler: (from: number, frame: Uint8Array) => void): void
  /** The peers and where they listen; the replica tells it when the membership changes. */
  setPeers(peers: ReadonlyMap<number, string>): void
  /**
   * Told once by the replica at its start: whom to call when a peer's process is known to have ended, because its
   * connection ended and another one was refused. A hint that only saves time; a network that cannot know leaves it out.
   */
  onEnded?(handler: (peer: number) => void): void
}

/** Structured log lines; `fields` hold numbers and short strings, never secrets. */
export interface Logger {
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

export interface Platform {
  readonly disk: Disk
  readonly clock: Clock
  readonly random: Random
  readonly network: Network
  readonly log: Logger
}
