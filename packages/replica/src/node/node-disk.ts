import { assert } from '@leasehold/core'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { type Disk, type DiskFile, DiskFullError, type Done, type FolderState } from '../platform.js'
import { FolderLostError } from '../storage/storage-errors.js'
import { syncFolder, syncPath } from './folder-sync.js'
import { type FolderOwner, stateOf } from './ownership/owned-folder.js'

/** Zeros are written in pieces of this size, so that other writes can run in between. */
const PIECE_BYTES = 1024 * 1024
const ZEROS = new Uint8Array(PIECE_BYTES)

function isFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code
  return code === 'ENOSPC' || code === 'EDQUOT'
}

/** A data folder on this machine. */
export class NodeDisk implements Disk {
  readonly #synced: ((seconds: number) => void) | undefined
  readonly #owner: Pick<FolderOwner, 'check'> | undefined
  /** Whether the names on the path to the folder are durable. They do not change afterwards. */
  #pathSynced = false

  /**
   * @param synced called after every durable write, with its duration in seconds
   * @param owner checks whether the folder still belongs to this process; without it, only files are checked
   */
  constructor(
    readonly path: string,
    synced?: (seconds: number) => void,
    owner?: Pick<FolderOwner, 'check'>,
  ) {
    this.#synced = synced
    this.#owner = owner
    fs.mkdirSync(path, { recursive: true, mode: 0o700 })
  }

  list(): string[] {
    return fs
      .readdirSync(this.path, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name)
      .sort()
  }

  size(name: string): number {
    return fs.statSync(this.#at(name)).size
  }

  read(name: string, offset = 0, length?: number): Uint8Array {
    const fd = fs.openSync(this.#at(name), 'r')
    try {
      const end = fs.fstatSync(fd).size
      const bytes = new Uint8Array(Math.max(0, Math.min(length ?? end - offset, end - offset)))
      for (let got = 0; got < bytes.length; ) {
        const n = fs.readSync(fd, bytes, got, bytes.length - got, offset + got)
        if (n === 0) return bytes.subarray(0, got)
        got += n
      }
      return bytes
    } finally {
      fs.closeSync(fd)
    }
  }

  open(name: string): DiskFile {
    const fd = fs.openSync(this.#at(name), 'r+')
    return new NodeDiskFile(name, fd, this.#synced, fs.fstatSync(fd).nlink > 0)
  }

  create(name: string, size: number, done: (error: Error | undefined, file?: DiskFile) => void): void {
    this.#unlessLost(done, () =>
      this.#make(name, size, (error, file) => {
        if (!file) return done(error)
        const lost = (why: Error): void => {
          file.close()
          done(why)
        }
        // Creating takes time: the path may lead to another folder now.
        this.#unlessLost(lost, () => done(undefined, file))
      }),
    )
  }

  #unlessLost(lost: (error: Error) => void, then: () => void): void {
    if (this.#owner === undefined) return then()
    this.#owner.check((state) => (state.kind === 'lost' ? lost(new FolderLostError(state)) : then()))
  }

  #make(name: string, size: number, done: (error: Error | undefined, file?: NodeDiskFile) => void): void {
    const path = this.#at(name)
    fs.open(path, 'wx', 0o600, (openError, fd) => {
      if (openError) return done(isFull(openError) ? new DiskFullError(path, { cause: openError }) : openError)
      const fail = (error: Error): void => {
        fs.close(fd, () => {
          fs.unlink(path, () => done(isFull(error) ? new DiskFullError(path, { cause: error }) : error))
        })
      }
      const zero = (offset: number): void => {
        if (offset === size) {
          fs.fdatasync(fd, (error) => {
            if (error) return fail(error)
            fs.fstat(fd, (unknown, stats) =>
              done(undefined, new NodeDiskFile(name, fd, this.#synced, !unknown && stats.nlink > 0)),
            )
          })
          return
        }
        fs.write(fd, ZEROS, 0, Math.min(PIECE_BYTES, size - offset), offset, (error, written) =>
          error ? fail(error) : zero(offset + written),
        )
      }
      zero(0)
    })
  }

  rename(from: string, to: string): void {
    fs.renameSync(this.#at(from), this.#at(to))
  }

  remove(name: string): void {
    fs.unlinkSync(this.#at(name))
  }

  syncFolder(): void {
    syncFolder(this.path)
    if (this.#pathSynced) return
    syncPath(this.path)
    this.#pathSynced = true
  }

  check(file: DiskFile | undefined, done: (state: FolderState) => void): void {
    const checkFile = (state: FolderState): void => {
      if (state.kind === 'own' && file instanceof NodeDiskFile) file.check(this.path, done)
      else done(state)
    }
    if (this.#owner) this.#owner.check(checkFile)
    else setImmediate(checkFile, { kind: 'own' })
  }

  #at(name: string): string {
    assert(/^[a-zA-Z0-9._-]+$/.test(name) && !name.startsWith('.'), () => `not a plain file name: ${name}`)
    return join(this.path, name)
  }
}

class NodeDiskFile implements DiskFile {
  readonly #fd: number
  readonly #synced: ((seconds: number) => void) | undefined
  /** Whether the file system counts links. If not, a count of 0 means nothing. */
  readonly #hadLinks: boolean
  #busy = false
  #checking = false
  #closed = false

  constructor(
    readonly name: string,
    fd: number,
    synced: ((seconds: number) => void) | undefined,
    hadLinks: boolean,
  ) {
    this.#fd = fd
    this.#synced = synced
    this.#hadLinks = hadLinks
  }

  write(offset: number, chunks: readonly Uint8Array[], sync: boolean, done: Done): void {
    this.#begin()
    const begun = sync && this.#synced !== undefined ? performance.now() : 0
    const end = (error?: Error | null): void => {
      this.#busy = false
      this.#closeUnused()
      if (sync) this.#synced?.((performance.now() - begun) / 1000)
      done(error ?? undefined)
    }
    const attempt = (at: number, rest: readonly Uint8Array[]): void => {
      fs.writev(this.#fd, rest as Uint8Array[], at, (error, written) => {
        if (error) return end(error)
        const left = remainder(rest, written)
        if (left.length > 0) return attempt(at + written, left)
        if (sync) fs.fdatasync(this.#fd, end)
        else end()
      })
    }
    attempt(offset, chunks)
  }

  writeSync(offset: number, chunks: readonly Uint8Array[]): void {
    this.#begin()
    const begun = this.#synced === undefined ? 0 : performance.now()
    try {
      let at = offset
      for (let rest: readonly Uint8Array[] = chunks; rest.length > 0; ) {
        const written = fs.writevSync(this.#fd, rest as Uint8Array[], at)
        at += written
        rest = remainder(rest, written)
      }
      fs.fdatasyncSync(this.#fd)
      this.#synced?.((performance.now() - begun) / 1000)
    } finally {
      this.#busy = false
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#closeUnused()
  }

  /** Checks whether the file still has a name. `done` never runs inside the call. */
  check(dir: string, done: (state: FolderState) => void): void {
    if (this.#closed || this.#checking) {
      setImmediate(done, { kind: 'own' })
      return
    }
    this.#checking = true
    fs.fstat(this.#fd, (error, stats) => {
      this.#checking = false
      this.#closeUnused()
      if (error) return done(stateOf(error))
      if (stats.nlink > 0 || !this.#hadLinks) return done({ kind: 'own' })
      done({ kind: 'lost', why: `a log file of ${dir} was deleted while it was in use` })
    })
  }

  /** Closes the descriptor once no call uses it: its number can then be reused. */
  #closeUnused(): void {
    if (this.#closed && !this.#busy && !this.#checking) fs.closeSync(this.#fd)
  }

  #begin(): void {
    assert(!this.#closed, () => `write to the closed file ${this.name}`)
    assert(!this.#busy, () => `a second write to ${this.name} while one is under way`)
    this.#busy = true
  }
}

/** Returns the rest of `chunks` after `written` bytes. */
function remainder(chunks: readonly Uint8Array[], written: number): readonly Uint8Array[] {
  let skip = written
  for (let i = 0; i < chunks.length; i++) {
    const chunk = chunks[i] as Uint8Array
    if (skip < chunk.length) return [chunk.subarray(skip), ...chunks.slice(i + 1)]
    skip -= chunk.length
  }
  return []
}
