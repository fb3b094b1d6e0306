import { assert, crc32, joinedCrc32, Reader, StorageError, Writer } from '@leasehold/core'
import type { Index, Term } from '@leasehold/raft'
import { type Disk, type DiskFile, DiskFullError } from '../platform.js'
import { DamagedError, damaged, FolderLostError, otherFormat, writeFailed } from '../storage/storage-errors.js'

/**
 * A snapshot file: header, meta, state, checksum of everything before it. The rest of the preallocated file is unused.
 *
 *     0  magic 'LHSN'    8  index, 8 bytes    24  length of meta           32  checksum of the 32 bytes before
 *     4  version        16  term, 8 bytes     28  length of the state
 */
const HEADER = 36
const MAGIC = 0x4e53484c
const FORMAT_VERSION = 1
const CHECKSUM = 4
const SNAPSHOT = /^snapshot-(\d{16})-(\d{16})$/
const RESERVE = /^reserve-(\d{1,15})$/
/** Size of the reserve relative to the newest snapshot, so that the next one fits. */
const RESERVE_GROWTH = 1.5
const KEPT = 2

export interface Snapshot {
  readonly index: Index
  readonly term: Term
  /** Encoded cluster id, configuration and members. */
  readonly meta: Uint8Array
  readonly state: Uint8Array
}

/** An encoded lock state, in pieces. */
export interface StatePieces {
  readonly pieces: readonly Uint8Array[]
  /** Length and checksum of all pieces together. */
  readonly bytes: number
  readonly checksum: number
}

export type SnapshotToSave = Omit<Snapshot, 'state'> & { readonly state: Uint8Array | StatePieces }

interface Kept {
  readonly name: string
  readonly index: Index
}

export interface SnapshotStoreOptions {
  /** Least size of the preallocated file for the next snapshot. */
  readonly reserveBytes: number
  /** Runs when the room on the disk has changed or a write has failed. */
  readonly changed: () => void
}

/**
 * The snapshot files of a data folder: the last two whole ones, and a preallocated file for the next, so that log compaction
 * works on a full disk. One `save` at a time.
 */
export class SnapshotStore {
  readonly #disk: Disk
  readonly #options: SnapshotStoreOptions
  /** The newest whole snapshot at the start. */
  readonly loaded: Snapshot | undefined
  /** The error of a newer file that was skipped in favor of `loaded`. The log must reach back to `loaded` then. */
  skipped: StorageError | undefined
  failure: StorageError | undefined
  isFull = false

  readonly #kept: Kept[]
  #reserve: { readonly name: string; readonly size: number } | undefined
  #isMakingReserve = false
  #isSaving = false
  #isClosed = false
  #nextReserve = 1
  #newestBytes = 0

  /** Reads the newest whole snapshot, and deletes the remains of an interrupted save. */
  constructor(disk: Disk, options: SnapshotStoreOptions) {
    this.#disk = disk
    this.#options = options
    const names = disk.list()
    for (const name of names) if (name.endsWith('.tmp')) disk.remove(name)
    const found = names.flatMap((name) => parseName(name) ?? []).sort((a, b) => b.index - a.index)
    const whole: Kept[] = []
    for (const one of found) {
      if (whole.length === KEPT) disk.remove(one.name)
      else {
        const snapshot = this.#read(one.name)
        if (!snapshot) continue
        this.loaded ??= snapshot
        whole.push(one)
      }
    }
    if (!this.loaded && this.skipped) throw this.skipped
    this.#kept = whole.reverse()
    this.#newestBytes = this.loaded ? fileBytes(this.loaded) : 0
    this.#adoptReserve(names)
  }

  /**
   * Reads a snapshot; undefined when it is damaged. The older one is read as well: a damaged file cannot replace the newest
   * snapshot, and must not take the place of a whole one.
   */
  #read(name: string): Snapshot | undefined {
    try {
      return readSnapshot(this.#disk, name)
    } catch (error) {
      if (this.loaded) return undefined
      // A file of another format is not damaged: it must not be skipped.
      if (!(error instanceof DamagedError)) throw error
      this.skipped ??= error
      return undefined
    }
  }

  /** The log may be compacted up to this index: the older snapshot can still replace a damaged newer one. */
  get compactableIndex(): Index {
    return this.#kept.length < KEPT ? 0 : (this.#kept[0] as Kept).index
  }

  /** Whether nothing is in progress. Stays true after `close`. */
  get isIdle(): boolean {
    return !this.#isMakingReserve && !this.#isSaving
  }

  /** Size of the newest snapshot file in bytes. */
  get lastBytes(): number {
    return this.#newestBytes
  }

  /** Creates the reserve if it is missing or too small. May be called at any time. */
  prepare(): void {
    const size = Math.max(this.#options.reserveBytes, Math.ceil(this.#newestBytes * RESERVE_GROWTH))
    if (
      this.#isMakingReserve ||
      this.#isClosed ||
      this.failure ||
      (this.#reserve && this.#reserve.size >= this.#newestBytes)
    )
      return
    this.#isMakingReserve = true
    const name = `reserve-${this.#nextReserve++}`
    this.#disk.create(`${name}.tmp`, size, (error, file) => {
      this.#isMakingReserve = false
      file?.close()
      if (this.#isClosed) return this.#options.changed()
      this.isFull = error instanceof DiskFullError
      if (error && !this.isFull) this.#fail(name, error)
      if (!error) {
        this.#guard(name, () => {
          this.#disk.rename(`${name}.tmp`, name)
          if (this.#reserve) this.#disk.remove(this.#reserve.name)
          this.#reserve = { name, size }
        })
      }
      this.#options.changed()
    })
  }

  /**
   * Makes a snapshot durable. `done` gets a {@link DiskFullError} when there is no room (nothing has changed, and a later save
   * may succeed), or the StorageError that stops the member. `reserve`: create the next reserve afterwards.
   */
  save(
    snapshot: SnapshotToSave,
    done: (error: Error | undefined) => void,
    options: { readonly reserve: boolean } = { reserve: true },
  ): void {
    assert(!this.#isSaving, 'a second snapshot while one is being written')
    assert(snapshot.index > (this.#kept.at(-1)?.index ?? -1), () => `snapshot ${snapshot.index} is not newer`)
    this.#isSaving = true
    const end = (error: Error | undefined): void => {
      this.#isSaving = false
      if (!error && options.reserve) this.prepare()
      done(error)
    }
    this.#checkFolder(end, () => this.#place(snapshot, end))
  }

  /** Checks that the folder at the path is still this member's. In another member's folder, nothing may be changed. */
  #checkFolder(end: (error: Error | undefined) => void, then: () => void): void {
    if (this.#disk.check === undefined) return then()
    this.#disk.check(undefined, (state) => {
      if (state.kind === 'lost') this.failure ??= new FolderLostError(state)
      if (this.failure) end(this.failure)
      else if (this.#isClosed) end(writeFailed(this.#disk.path, 'the member has stopped'))
      else then()
    })
  }

  #place(snapshot: SnapshotToSave, end: (error: Error | undefined) => void): void {
    const bytes = fileBytes(snapshot)
    if (this.#reserve && this.#reserve.size >= bytes) {
      const { name } = this.#reserve
      this.#reserve = undefined
      let file: DiskFile
      try {
        file = this.#disk.open(name)
      } catch (error) {
        this.#fail(name, error)
        return this.#write(undefined, name, snapshot, end)
      }
      return this.#write(file, name, snapshot, end)
    }
    const name = `${nameOf(snapshot)}.tmp`
    this.#disk.create(name, bytes, (error, file) => {
      if (error && !(error instanceof DiskFullError)) this.#fail(name, error)
      if (error instanceof DiskFullError) end(error)
      else this.#write(file, name, snapshot, end)
    })
  }

  close(): void {
    this.#isClosed = true
  }

  #write(
    file: DiskFile | undefined,
    name: string,
    snapshot: SnapshotToSave,
    end: (error: Error | undefined) => void,
  ): void {
    if (!file) return end(this.failure)
    file.write(0, encode(snapshot), true, (error) => {
      file.close()
      if (error) {
        this.#fail(name, error)
        return end(this.failure)
      }
      this.#checkFolder(end, () => {
        this.#guard(name, () => this.#publish(name, snapshot))
        end(this.failure)
      })
    })
  }

  #publish(from: string, snapshot: SnapshotToSave): void {
    const name = nameOf(snapshot)
    this.#disk.rename(from, name)
    this.#disk.syncFolder()
    this.#kept.push({ name, index: snapshot.index })
    this.#newestBytes = fileBytes(snapshot)
    while (this.#kept.length > KEPT) this.#disk.remove((this.#kept.shift() as Kept).name)
  }

  #guard(name: string, action: () => void): void {
    try {
      action()
    } catch (error) {
      this.#fail(name, error)
    }
  }

  #fail(name: string, error: unknown): void {
    this.failure ??= writeFailed(`${this.#disk.path}/${name}`, error)
  }

  #adoptReserve(names: readonly string[]): void {
    for (const name of names) {
      const match = RESERVE.exec(name)
      if (!match) continue
      this.#nextReserve = Math.max(this.#nextReserve, Number(match[1]) + 1)
      if (this.#reserve) this.#disk.remove(name)
      else this.#reserve = { name, size: this.#disk.size(name) }
    }
  }
}

function nameOf(snapshot: Pick<Snapshot, 'index' | 'term'>): string {
  return `snapshot-${String(snapshot.index).padStart(16, '0')}-${String(snapshot.term).padStart(16, '0')}`
}

/** Returns the names of a folder's snapshot files, oldest first. */
export function snapshotNames(disk: Disk): string[] {
  const found = disk.list().flatMap((name) => parseName(name) ?? [])
  return found.sort((a, b) => a.index - b.index).map(({ name }) => name)
}

function parseName(name: string): Kept | undefined {
  const match = SNAPSHOT.exec(name)
  return match ? { name, index: Number(match[1]) } : undefined
}

function fileBytes({ meta, state }: SnapshotToSave): number {
  return HEADER + meta.length + (state instanceof Uint8Array ? state.length : state.bytes) + CHECKSUM
}

function inPieces(state: Uint8Array | StatePieces): StatePieces {
  return state instanceof Uint8Array ? { pieces: [state], bytes: state.length, checksum: crc32(state) } : state
}

function encode(snapshot: SnapshotToSave): Uint8Array[] {
  const state = inPieces(snapshot.state)
  const header = new Writer(HEADER)
  header.u32(MAGIC)
  header.u32(FORMAT_VERSION)
  header.u64(BigInt(snapshot.index))
  header.u64(BigInt(snapshot.term))
  header.u32(snapshot.meta.length)
  header.u32(state.bytes)
  header.u32(crc32(header.peek()))
  const head = header.take()
  const end = new Writer(CHECKSUM)
  end.u32(joinedCrc32(crc32(snapshot.meta, crc32(head)), state.checksum, state.bytes))
  return [head, snapshot.meta, ...state.pieces, end.take()].filter((chunk) => chunk.length > 0)
}

/**
 * Reads and checks one snapshot file.
 * @throws StorageError that names file and offset
 */
export function readSnapshot(disk: Disk, name: string): Snapshot {
  const file = `${disk.path}/${name}`
  const bytes = disk.read(name)
  if (bytes.length < HEADER + CHECKSUM) throw damaged(file, bytes.length, 'the file is too short')
  const reader = new Reader(bytes)
  const magic = reader.u32()
  const version = reader.u32()
  if (new Reader(bytes, HEADER - 4).u32() !== crc32(bytes.subarray(0, HEADER - 4)) || magic !== MAGIC) {
    throw damaged(file, 0, 'its header does not match its checksum')
  }
  if (version !== FORMAT_VERSION) throw otherFormat(file, version, FORMAT_VERSION)
  const [index, term, metaLength, stateLength] = [
    Number(reader.u64()),
    Number(reader.u64()),
    reader.u32(),
    reader.u32(),
  ]
  const end = HEADER + metaLength + stateLength
  if (end + CHECKSUM > bytes.length)
    throw damaged(file, bytes.length, `the file ends before its ${end + CHECKSUM} bytes`)
  if (new Reader(bytes, end).u32() !== crc32(bytes.subarray(0, end))) {
    throw damaged(file, HEADER, 'its content does not match its checksum')
  }
  const meta = bytes.slice(HEADER, HEADER + metaLength)
  const snapshot = { index, term, meta, state: bytes.slice(HEADER + metaLength, end) }
  if (nameOf(snapshot) !== name) throw damaged(file, 0, `its name does not fit entry ${index} of term ${term}`)
  return snapshot
}
