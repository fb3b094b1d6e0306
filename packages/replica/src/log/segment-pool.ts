import { assert } from '@leasehold/core'
import { allZero } from './all-zero.js'
import { type Disk, type DiskFile, DiskFullError } from '../platform.js'
import { FolderLostError, writeFailed } from '../storage/storage-errors.js'

const SPARE = /^spare-(\d{1,15})$/
const CHECK_PIECE_BYTES = 1024 * 1024

export interface SegmentPoolOptions {
  readonly segmentBytes: number
  /** How many files to keep ready; at least one. They are the reserve for a full disk. */
  readonly count: number
}

/**
 * Creates zeroed files in the background that become log segments. When the disk is full, the ready ones remain usable;
 * `isFull` is true then, and {@link SegmentPool.prepare} retries.
 */
export class SegmentPool {
  readonly #disk: Disk
  readonly #options: SegmentPoolOptions
  readonly #changed: () => void
  /** Whether the last attempt to create a segment found no room. */
  isFull = false
  failure: Error | undefined
  readonly #ready: { readonly name: string; readonly file: DiskFile }[] = []
  #waiting: (() => void) | undefined
  #isCreating = false
  /** The folder is being checked before or after a creation. */
  #isChecking = false
  #isClosed = false
  #nextNumber = 1

  /** `changed` runs when a segment is ready, when the disk is full, or when creating one failed. */
  constructor(disk: Disk, options: SegmentPoolOptions, changed: () => void) {
    this.#disk = disk
    this.#options = options
    this.#changed = changed
    assert(options.count >= 1, () => `${options.count} spare segments`)
    for (const name of disk.list()) {
      const match = SPARE.exec(name)
      if (!match) continue
      this.#nextNumber = Math.max(this.#nextNumber, Number(match[1]) + 1)
      if (this.#isUsable(name)) this.#ready.push({ name, file: disk.open(name) })
      else disk.remove(name)
    }
  }

  /** Whether {@link SegmentPool.take} would return a segment now. */
  get hasReady(): boolean {
    return this.#ready.length > 0
  }

  /** Whether no segment is being created. */
  get isIdle(): boolean {
    return !this.#isCreating
  }

  take(): { readonly name: string; readonly file: DiskFile } | undefined {
    return this.#ready.shift()
  }

  /** Runs `then` once a segment is ready, or it is certain that none will be (`isFull` or `failure`). */
  waitForSegment(then: () => void): void {
    assert(this.#waiting === undefined, 'a second caller waits for a spare segment')
    if (this.#isClosed) return then()
    this.#waiting = then
    this.prepare()
  }

  /** Creates missing segments. May be called at any time. */
  prepare(): void {
    if (this.#isChecking || this.#isCreating || this.#isClosed || this.failure) return
    if (this.#ready.length >= this.#options.count) return
    const name = `spare-${this.#nextNumber++}`
    this.#ifOwned(() => {
      this.#isCreating = true
      this.#disk.create(`${name}.tmp`, this.#options.segmentBytes, (error, file) => {
        this.#isCreating = false
        if (!error || error instanceof DiskFullError) this.#end(error, file && { name, file })
        // A folder that was deleted meanwhile is the better reason.
        else this.#ifOwned(() => this.#end(writeFailed(`${this.#disk.path}/${name}.tmp`, error)))
      })
    })
  }

  /** Runs `then` unless another folder, or none, is at the path by now: that one is left as it is. Never, if the check hangs. */
  #ifOwned(then: () => void): void {
    if (this.#disk.check === undefined) return then()
    this.#isChecking = true
    this.#disk.check(undefined, (state) => {
      this.#isChecking = false
      if (state.kind === 'lost') this.#end(new FolderLostError(state))
      else if (this.#isClosed) this.#end(undefined)
      else then()
    })
  }

  /** Ends the creation of a segment. */
  #end(error: Error | undefined, created?: { readonly name: string; readonly file: DiskFile }): void {
    if (this.#isClosed) {
      created?.file.close()
      this.#release()
      return this.#changed()
    }
    this.isFull = error instanceof DiskFullError
    if (error && !this.isFull) this.failure = error
    if (created) this.#add(created.name, created.file)
    this.#release()
    this.#changed()
    if (!error) this.prepare()
  }

  close(): void {
    this.#isClosed = true
    for (const spare of this.#ready) spare.file.close()
    this.#ready.length = 0
    // A check that hangs must not hold up the end.
    if (!this.#isCreating) this.#release()
  }

  /** Lets the append continue that waits for a segment. It fails if none is ready. */
  #release(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.()
  }

  #add(name: string, file: DiskFile): void {
    try {
      this.#disk.rename(`${name}.tmp`, name)
      this.#ready.push({ name, file })
    } catch (error) {
      file.close()
      this.failure = writeFailed(`${this.#disk.path}/${name}`, error)
    }
  }

  #isUsable(name: string): boolean {
    const { segmentBytes, count } = this.#options
    if (this.#ready.length >= count || this.#disk.size(name) !== segmentBytes) return false
    for (let at = 0; at < segmentBytes; at += CHECK_PIECE_BYTES) {
      if (!allZero(this.#disk.read(name, at, CHECK_PIECE_BYTES))) return false
    }
    return true
  }
}
