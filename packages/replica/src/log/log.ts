import type { Entry, HardState, Index, Term } from '@leasehold/raft'
import { assert, type StorageError, Writer } from '@leasehold/core'
import { type Disk, DiskFullError, type DiskFile, type Done, type FolderState } from '../platform.js'
import { FolderLostError, writeFailed } from '../storage/storage-errors.js'
import { entryBytes } from './entry-codec.js'
import { makeDurable } from './durable.js'
import { encodeFrame, FRAME_HEADER, type FrameBody } from './frame.js'
import { checkHardState, reconcileSnapshot } from './reconcile.js'
import { isTailMarker, type TailMarker, tailMarkerOf, readTailMarker } from './tail-marker.js'
import { type Recovered, recoverLog } from './recovery.js'
import { type Segment, segmentName, segmentSeed } from './segment.js'
import { SegmentPool } from './segment-pool.js'

export interface LogOptions {
  /** Seed of all checksums, unique to this member. */
  readonly identity: number
  /** Size of a log file. */
  readonly segmentBytes: number
  /** Preallocated files besides the current one: the reserve for a full disk. */
  readonly spareSegments: number
  /** The newest whole snapshot; index 0 when there is none. */
  readonly snapshot: { readonly index: Index; readonly term: Term }
  /** Runs when the room on the disk has changed or the log has failed. */
  readonly changed: () => void
}

/** The content of one flush. `entries` replace the log from `entries[0].index` on. */
export interface LogRecord {
  readonly hardState?: HardState | undefined
  readonly entries: readonly Entry[]
  /** A durable snapshot from the leader that was installed: the log restarts after it. */
  readonly base?: { readonly index: Index; readonly term: Term } | undefined
}

interface Placed {
  readonly file: DiskFile
  readonly offset: number
  readonly bytes: Uint8Array
}

const FRAME_OVERHEAD = FRAME_HEADER + 128
const SEGMENT_BYTES_MIN = 4096

/**
 * The member's log on disk: a sequence of preallocated files that are overwritten from front to back, one frame per flush.
 *
 * States: open → failed (a write, sync or rename failed; nothing is retried) → closed. One append at a time. A full disk is a
 * failure only when no spare file is left.
 */
export class Log {
  readonly #disk: Disk
  readonly #options: LogOptions
  readonly hardState: HardState
  /** The entries after the snapshot that were on the disk at the start. */
  readonly recovered: readonly Entry[]
  failure: StorageError | undefined

  readonly #pool: SegmentPool
  readonly #segments: Segment[]
  #file: DiskFile | undefined
  #seed = 0
  #tail: number
  #sequence: number
  #lastIndex: Index
  #pendingBase: { readonly index: Index; readonly term: Term } | undefined
  #writtenState: HardState
  #marker: TailMarker | undefined
  #isAppending = false
  #isClosed = false
  /** Shared by all frames: one is encoded and written at a time. */
  readonly #writer = new Writer(4096)

  /**
   * Reads the log and prepares it for writing. `done` may run inside the call. It gets a StorageError on damage (with file and
   * offset), or when the disk is full or broken.
   */
  static open(disk: Disk, options: LogOptions, done: (error: Error | undefined, log?: Log) => void): void {
    assert(options.segmentBytes >= SEGMENT_BYTES_MIN, () => `log files of ${options.segmentBytes} bytes are too small`)
    let log: Log
    try {
      log = new Log(disk, options, recoverLog(disk, options.identity, options.snapshot.index))
    } catch (error) {
      return done(error as Error)
    }
    const marked = (): void => {
      if (log.failure) {
        log.close()
        return done(log.failure)
      }
      if (log.#file || log.#pool.hasReady) {
        log.#pool.prepare()
        return done(undefined, log)
      }
      log.#pool.waitForSegment(() => {
        if (log.#pool.hasReady) return done(undefined, log)
        log.close()
        done(log.#pool.failure ?? noRoom(disk))
      })
    }
    log.#openMarker(marked)
  }

  /** For {@link Log.open}. */
  constructor(disk: Disk, options: LogOptions, recovered: Recovered) {
    this.#disk = disk
    this.#options = options
    this.#segments = recovered.segments
    this.#sequence = recovered.nextSequence
    this.#tail = recovered.tail
    const { snapshot } = options
    const joined = reconcileSnapshot(recovered, snapshot)
    this.recovered = joined.entries
    this.#pendingBase = joined.needBase ? snapshot : undefined
    this.#lastIndex = joined.entries.at(-1)?.index ?? snapshot.index
    this.hardState = this.#writtenState = checkHardState(disk, recovered.hardState, snapshot, this.#lastIndex)
    const current = this.#segments.at(-1)
    if (current) {
      this.#file = disk.open(current.name)
      this.#seed = segmentSeed(options.identity, current)
      try {
        makeDurable(disk, recovered, this.#file)
      } catch (error) {
        this.#file.close()
        throw error
      }
    }
    for (const name of recovered.leftovers) disk.remove(name)
    this.#pool = new SegmentPool(disk, { segmentBytes: options.segmentBytes, count: options.spareSegments }, () =>
      this.#poolChanged(),
    )
  }

  /** Whether the disk has no room for another spare file. */
  get isFull(): boolean {
    return this.#pool.isFull
  }

  /** Creates the marker if there is none. On a full disk there may be none: a missing log file goes unnoticed then. */
  #openMarker(then: () => void): void {
    const disk = this.#disk
    const options = this.#options
    this.#marker = readTailMarker(disk, options.identity)
    const moved = (): void => {
      try {
        for (const name of disk.list()) if (isTailMarker(name) && name !== this.#marker?.name) disk.remove(name)
        this.#moveMarker()
      } catch (error) {
        this.#fail(writeFailed(disk.path, error))
      }
      then()
    }
    if (this.#marker) return moved()
    const marker = tailMarkerOf(options.identity, 0, 0)
    disk.create(marker.name, 0, (error, file) => {
      file?.close()
      if (file) this.#marker = marker
      else if (!(error instanceof DiskFullError)) this.#fail(writeFailed(`${disk.path}/${marker.name}`, error))
      moved()
    })
  }

  /** Moves the marker to the newest file, whose name is durable. */
  #moveMarker(): void {
    const marker = this.#marker
    const disk = this.#disk
    const newest = this.#segments.at(-1)
    if (!marker || !newest || newest.firstSequence === marker.firstSequence) return
    const next = tailMarkerOf(this.#options.identity, newest.firstSequence, disk.size(newest.name))
    disk.rename(marker.name, next.name)
    disk.syncFolder()
    this.#marker = next
  }

  /** Whether nothing is in progress. Stays true after `close`. */
  get isIdle(): boolean {
    return !this.#isAppending && this.#pool.isIdle
  }

  /** Retries creating the missing spare files. */
  prepare(): void {
    if (!this.#isClosed && !this.failure) this.#pool.prepare()
  }

  /** Most bytes of entries (by {@link entryBytes}) in one frame. */
  get frameRoom(): number {
    return this.#options.segmentBytes - FRAME_OVERHEAD
  }

  /** Writes and syncs a record. `done` gets the error if the log has failed. */
  append(record: LogRecord, done: Done): void {
    this.#begin()
    const parts = this.#split(record)
    const step = (at: number): void => {
      const part = parts[at]
      if (part === undefined || this.failure || this.#isClosed) {
        this.#isAppending = false
        return done(this.failure ?? (part && this.#closedError))
      }
      this.#place(part, (error, placed) => {
        if (!placed) return this.#end(error, done)
        placed.file.write(placed.offset, [placed.bytes], true, (failed) => {
          if (failed) return this.#end(writeFailed(`${this.#disk.path}/${this.#segments.at(-1)?.name}`, failed), done)
          step(at + 1)
        })
      })
    }
    step(0)
  }

  /** Appends a record by blocking calls. Returns false and does nothing when a new file is needed: use `append` then. */
  appendSync(record: LogRecord): boolean {
    this.#begin()
    this.#isAppending = false
    const parts = this.#split(record)
    const part = parts[0]
    if (parts.length !== 1 || part === undefined || !this.#file) return false
    const bytes = this.#encode(part)
    if (this.#tail + bytes.length > this.#options.segmentBytes) return false
    const placed = this.#advance(this.#file, part, bytes)
    try {
      placed.file.writeSync(placed.offset, [placed.bytes])
    } catch (error) {
      this.failure = writeFailed(`${this.#disk.path}/${this.#segments.at(-1)?.name}`, error)
      throw this.failure
    }
    return true
  }

  /** Deletes files without entries above `index`, which a durable snapshot covers. */
  compact(index: Index): void {
    if (this.failure || this.#isClosed) return
    try {
      while (this.#segments.length > 1 && (this.#segments[0] as Segment).maxIndex <= index) {
        this.#disk.remove((this.#segments.shift() as Segment).name)
      }
    } catch (error) {
      this.#fail(writeFailed(this.#disk.path, error))
    }
    this.#pool.prepare()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#file?.close()
    this.#pool.close()
  }

  #begin(): void {
    assert(!this.#isClosed, 'append to a closed log')
    assert(!this.#isAppending, 'a second append while one is under way')
    if (this.failure) throw this.failure
    this.#isAppending = true
  }

  #end(error: Error | undefined, done: Done): void {
    this.#isAppending = false
    this.#fail(error as StorageError)
    done(this.failure)
  }

  #fail(error: StorageError): void {
    this.failure ??= error
  }

  #poolChanged(): void {
    if (this.#pool.failure) this.#fail(this.#pool.failure as StorageError)
    this.#options.changed()
  }

  /** Determines the place of a frame, in a new file if necessary. */
  #place(part: FrameBody, then: (error: Error | undefined, placed?: Placed) => void): void {
    if (this.#file) {
      const bytes = this.#encode(part)
      if (this.#tail + bytes.length <= this.#options.segmentBytes)
        return then(undefined, this.#advance(this.#file, part, bytes))
    }
    const roll = (): void => {
      const error = this.#roll()
      if (error || !this.#file) then(error)
      else then(undefined, this.#advance(this.#file, part, this.#encode(part)))
    }
    const checked = (lost: StorageError | undefined): void => {
      if (lost) then(lost)
      else if (this.#pool.hasReady) roll()
      else this.#pool.waitForSegment(roll)
    }
    // A rename in a folder that has replaced this one would damage that one.
    if (this.#disk.check === undefined) checked(undefined)
    else this.check((state) => checked(state.kind === 'lost' ? new FolderLostError(state) : this.#closedError))
  }

  get #closedError(): StorageError | undefined {
    return this.#isClosed ? writeFailed(this.#disk.path, 'the log was closed') : undefined
  }

  /** Checks that the folder still belongs to this member, and that the current file still has a name. */
  check(done: (state: FolderState) => void): void {
    this.#disk.check?.(this.#file, done)
  }

  /** Makes a spare file the current one. */
  #roll(): StorageError | undefined {
    const spare = this.#pool.take()
    if (!spare) return (this.#pool.failure as StorageError | undefined) ?? noRoom(this.#disk)
    const firstIndex = this.#lastIndex + 1
    const name = segmentName(this.#sequence, firstIndex)
    try {
      this.#disk.rename(spare.name, name)
      this.#disk.syncFolder()
    } catch (error) {
      spare.file.close()
      return writeFailed(`${this.#disk.path}/${name}`, error)
    }
    this.#file?.close()
    this.#file = spare.file
    this.#tail = 0
    const segment = { name, firstSequence: this.#sequence, firstIndex, maxIndex: firstIndex - 1 }
    this.#segments.push(segment)
    this.#seed = segmentSeed(this.#options.identity, segment)
    try {
      this.#moveMarker()
    } catch (error) {
      return writeFailed(`${this.#disk.path}/${this.#marker?.name}`, error)
    }
    this.#pool.prepare()
    return undefined
  }

  /** Encodes a frame. The first one of a file repeats the hard state, so that older files can be deleted. */
  #encode(part: FrameBody): Uint8Array {
    const body = this.#tail === 0 && !part.hardState ? { ...part, hardState: this.#writtenState } : part
    return encodeFrame(this.#seed, this.#sequence, body, this.#writer)
  }

  #advance(file: DiskFile, part: FrameBody, bytes: Uint8Array): Placed {
    const offset = this.#tail
    assert(offset + bytes.length <= this.#options.segmentBytes, () => `a frame of ${bytes.length} bytes at ${offset}`)
    this.#tail += bytes.length
    this.#sequence++
    if (part.hardState) this.#writtenState = part.hardState
    if (part.base) {
      this.#lastIndex = part.base.index
      this.#pendingBase = undefined
    }
    const last = part.entries.at(-1)
    if (last) {
      this.#lastIndex = last.index
      const segment = this.#segments.at(-1) as Segment
      segment.maxIndex = Math.max(segment.maxIndex, last.index)
    }
    return { file, offset, bytes }
  }

  /** Splits a record that is too large for one file. Term and vote come first, the commit index last. */
  #split(record: LogRecord): FrameBody[] {
    const base = record.base ?? this.#pendingBase
    const groups: Entry[][] = [[]]
    let bytes = 0
    let next = record.entries[0]?.index ?? 0
    assert(
      next <= (base?.index ?? this.#lastIndex) + 1,
      () => `entry ${next} leaves a gap after ${base?.index ?? this.#lastIndex}`,
    )
    for (const entry of record.entries) {
      assert(entry.index === next++, () => `entry ${entry.index} where ${next - 1} follows`)
      const size = entryBytes(entry)
      assert(size <= this.frameRoom, () => `entry ${entry.index} of ${size} bytes does not fit into a log file`)
      if (bytes + size > this.frameRoom) {
        groups.push([])
        bytes = 0
      }
      bytes += size
      groups.at(-1)?.push(entry)
    }
    const { hardState } = record
    return groups.map((entries, i) => {
      const last = i === groups.length - 1
      const early = hardState && { ...hardState, commit: Math.min(hardState.commit, this.#writtenState.commit) }
      return { hardState: last ? hardState : i === 0 ? early : undefined, base: i === 0 ? base : undefined, entries }
    })
  }
}

function noRoom(disk: Disk): StorageError {
  return writeFailed(disk.path, 'no space left on the disk, and the reserve is used up')
}
