/**
 * The interfaces through which a member uses the machine. The server binds them to the real machine (`node/`), the lab to
 * a simulated one. Nothing else in this package touches the machine, so the same code runs in both. Completion is by
 * callback, never by promise: in the lab, the simulation decides the order of completions. A callback never runs inside the
 * call that passes it in.
 */

/** Reported when the disk has no room. The file is unchanged or absent. */
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
   * The blocking form of `write`, with sync: the shortest path while the disk is fast. Without chunks, it only syncs earlier
   * writes, also those of other processes. Throws on failure.
   */
  writeSync(offset: number, chunks: readonly Uint8Array[]): void
  close(): void
}

/** The outcome of a check of the data folder. `facts` are for the log only. */
export type FolderState =
  | { readonly kind: 'own' }
  /** The folder is no longer at its path: deleted, renamed, unmounted or replaced. */
  | {
      readonly kind: 'lost'
      readonly why: string
      /** What to do, unless it is to bring the folder back. */
      readonly hint?: string
      readonly facts?: Record<string, unknown>
    }
  /** The device or file server is gone; it may return. */
  | { readonly kind: 'failing'; readonly why: string }
  /** The check itself failed, which proves nothing about the folder. */
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * One flat data folder. Calls without a callback block and throw on failure; they are for start-up and rare events (roll,
 * snapshot). Names are plain file names.
 */
export interface Disk {
  /** The folder's name in error messages, such as its path. */
  readonly path: string
  /** Names of all files, sorted. */
  list(): string[]
  size(name: string): number
  /** Reads the whole file, or `length` bytes from `offset`. */
  read(name: string, offset?: number, length?: number): Uint8Array
  /** Opens an existing file for writing. */
  open(name: string): DiskFile
  /**
   * Creates a file of `size` zero bytes and syncs it. The bytes are allocated, so later writes inside the file cannot run out
   * of space. Reports {@link DiskFullError} and leaves no file behind when there is no room.
   */
  create(name: string, size: number, done: (error: Error | undefined, file?: DiskFile) => void): void
  /** Renames a file atomically. Durable only after {@link Disk.syncFolder}. */
  rename(from: string, to: string): void
  remove(name: string): void
  /** Makes creations, renames and removals durable, and the names on the path to the folder. */
  syncFolder(): void
  /**
   * Checks without blocking that the folder at the path is the one that was opened, and that `file` still has a name. `done`
   * may never run when the file system hangs. Absent on disks that cannot be lost.
   */
  check?(file: DiskFile | undefined, done: (state: FolderState) => void): void
}

/** A monotonic clock of whole milliseconds (fractions dropped), and one-shot timers on it. */
export interface Clock {
  monotonicMs(): number
  /** Milliseconds since 1970 by the wall clock, which may be wrong or jump. Used only for counter floors. */
  wallMs(): number
  /** Runs `callback` once, after at least `delayMs`. Returns a function that cancels it. */
  after(delayMs: number, callback: () => void): () => void
}

/** Unpredictable random bytes: secrets, nonces, identities, election jitter. */
export interface Random {
  bytes(length: number): Uint8Array
  /** A whole number, 0 ≤ n < limit ≤ 2^32. */
  below(limit: number): number
}

/**
 * The connection to the other members. Frames may be lost, duplicated, delayed and reordered; a frame that arrives is
 * complete. `lane` separates heartbeats and votes from bulk data, so that a large snapshot does not look like a dead leader.
 */
export interface Network {
  /** Queues a frame. Drops it silently when the peer's bounded queue is full or the peer is unreachable. */
  send(to: number, lane: 'control' | 'bulk', frame: Uint8Array): void
  /** Registers the handler of incoming frames. The replica calls it once, at its start. */
  receive(handler: (from: number, frame: Uint8Array) => void): void
  /** Sets the peers and their addresses. The replica calls it whenever the membership changes. */
  setPeers(peers: ReadonlyMap<number, string>): void
  /**
   * Registers the handler for a peer whose process has ended, known because its connection closed and another one was
   * refused. A hint that only saves time. Absent on networks that cannot know.
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
