import { type Disk, type DiskFile, DiskFullError, type Done, type FolderState } from '@leasehold/replica'
import { type DiskFaults, type DiskTrouble, noTrouble, QUIET_DISK } from './disk-faults.js'
import { Folder } from './folder.js'
import { Inode, SECTOR } from './inode.js'

/** Points at which the process may die; `written`: the end of a write, before its sync. */
export type DiskEffect = 'create' | 'created' | 'rename' | 'remove' | 'syncFolder' | 'write' | 'written'

/** What a disk needs of the world and of the process that uses it. */
export interface DiskHost {
  /** Runs `action` once, later; never when the process has died meanwhile. */
  after(delayMs: number, action: () => void): void
  /** False when the process is dead: then nothing has any effect any more. Each call is a point where it may die. */
  effect(what: DiskEffect): boolean
  /** A write or a sync of a file is about to be told as failed. */
  failed?(): void
}

export interface Draw {
  /** 0 ≤ n < limit. */
  below(limit: number): number
}

/** An error of the simulated system, with its code. */
export class DiskError extends Error {
  constructor(
    readonly code: 'EIO' | 'EROFS' | 'ENOENT' | 'EEXIST',
    file: string,
  ) {
    super(`${code}: ${file}`)
    this.name = 'DiskError'
  }
}

/**
 * A disk with one folder. It outlives the processes that use it: each opens it with {@link SimulatedDisk.mount}, and
 * {@link SimulatedDisk.crash} leaves what a power cut would.
 */
export class SimulatedDisk {
  faults: DiskFaults = QUIET_DISK
  trouble: DiskTrouble = noTrouble()
  /** Bytes that fit: a file that is made or grows is cut off at this byte. Writes inside a file need no room. */
  capacity = Number.POSITIVE_INFINITY
  /**
   * Whether members check that the folder is still there. Only where it may be removed: each check takes its time, and
   * would change every run.
   */
  watched = false
  /** Something on it has changed by itself, so that a member may refuse to start with it. */
  altered = false
  readonly folder = new Folder()
  /** Counts of what has happened, for reports. */
  readonly counts = { writes: 0, syncs: 0, lost: 0, torn: 0, failures: 0 }
  /** Writes that wait because the disk is stuck. */
  #held: (() => void)[] = []

  readonly #draw: Draw

  constructor(
    readonly path: string,
    draw: Draw,
  ) {
    this.#draw = draw
  }

  get used(): number {
    let bytes = 0
    for (const inode of this.folder.names.values()) bytes += inode.size
    return bytes
  }

  get room(): number {
    return Math.max(0, this.capacity - this.used)
  }

  /** The disk as one process sees it. */
  mount(host: DiskHost): Disk {
    return new Mounted(this, host)
  }

  /** The power goes, or the process does and the system with it: what was not synced may be lost. */
  crash(): void {
    const { loss, kept, journal } = this.faults
    this.#held = []
    this.folder.crash(() => this.#draw.below(1000) < kept, journal)
    for (const inode of this.folder.names.values()) {
      if (!inode.dirty) continue
      let lost = 0
      let all = 0
      inode.settle(() => {
        all++
        const gone = this.#draw.below(1000) < loss
        if (gone) lost++
        return gone
      })
      this.counts.lost += lost
      if (lost > 0 && lost < all) this.counts.torn++
    }
  }

  /**
   * Only the process has died: everything that it wrote can be read, and what it did not sync is still unsynced, names in the
   * folder included. A crash may take it away until another process syncs it.
   */
  processDied(): void {
    this.#held = []
  }

  /** Everything is gone. */
  wipe(): void {
    for (const name of [...this.folder.names.keys()]) this.folder.unlink(name)
    this.folder.sync()
    this.trouble = noTrouble()
    this.capacity = Number.POSITIVE_INFINITY
    this.altered = false
  }

  /** The folder is deleted under the member, or its mount goes away: nothing of it comes back. */
  removeFolder(): void {
    for (const name of [...this.folder.names.keys()]) this.folder.unlink(name)
    this.folder.sync()
    this.trouble.removed = true
  }

  /** A copy of every file, for backups and for looking at. */
  files(): ReadonlyMap<string, Uint8Array> {
    return new Map([...this.folder.names].map(([name, inode]) => [name, inode.bytes.slice(0, inode.size)]))
  }

  /** A copy of every file is put in the place of what is there: the disk is what it was when the copy was made. */
  setBack(files: ReadonlyMap<string, Uint8Array>): void {
    for (const name of [...this.folder.names.keys()]) this.folder.unlink(name)
    for (const [name, bytes] of files) {
      const inode = new Inode(bytes.length)
      inode.write(0, bytes)
      inode.sync()
      this.folder.link(name, inode)
    }
    this.folder.sync()
    this.altered = true
  }

  /** Changes one bit of a file whose name fits. Returns the name, or undefined when there is none. */
  rot(pattern: RegExp, where: 'written' | 'anywhere' = 'written'): string | undefined {
    const names = [...this.folder.names.keys()].filter((name) => pattern.test(name)).sort()
    if (names.length === 0) return undefined
    const name = names[this.#draw.below(names.length)] as string
    const inode = this.folder.names.get(name) as Inode
    const end = where === 'written' ? lastByte(inode) + 1 : inode.size
    if (end === 0) return undefined
    inode.flip(this.#draw.below(Math.min(end * 8, 2 ** 32 - 1)))
    this.altered = true
    return name
  }

  setStuck(stuck: boolean): void {
    this.trouble.stuck = stuck
    if (stuck) return
    for (const action of this.#held.splice(0)) action()
  }

  // --- For mounted folders ---

  /** Time of one write with sync. */
  latency(): number {
    const { syncMs, syncSpreadMs, slowMs } = this.faults
    if (this.trouble.slow) return slowMs
    return syncMs + (syncSpreadMs > 0 ? this.#draw.below(syncSpreadMs * 1000) / 1000 : 0)
  }

  /** Runs `action` when the disk has had its time for it. */
  later(host: DiskHost, action: () => void): void {
    host.after(this.latency(), () => {
      if (this.trouble.stuck) this.#held.push(action)
      else action()
    })
  }

  pick(count: number): number {
    return this.#draw.below(count)
  }

  /**
   * Dirty pages that could not be written are given up: some have reached the platter, the others are lost. Some systems
   * drop them at once, others let them be read and take them for clean.
   */
  dropPages(inode: Inode): void {
    this.counts.failures++
    const readable = this.#draw.below(2) === 1
    inode.drop(() => this.#draw.below(1000) < this.faults.loss, readable)
  }
}

/** Where the whole sectors of a file begin. */
function sectorsOf(bytes: Uint8Array): number[] {
  return Array.from({ length: Math.floor(bytes.length / SECTOR) }, (_, i) => i * SECTOR)
}

function allZero(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] !== 0) return false
  return true
}

function lastByte({ bytes, size }: Inode): number {
  let at = size - 1
  while (at >= 0 && bytes[at] === 0) at--
  return at
}

class Mounted implements Disk {
  readonly path: string
  readonly check?: (file: DiskFile | undefined, done: (state: FolderState) => void) => void

  readonly #disk: SimulatedDisk
  readonly #host: DiskHost

  constructor(disk: SimulatedDisk, host: DiskHost) {
    this.#disk = disk
    this.#host = host
    this.path = disk.path
    if (disk.watched) this.check = (_file, done) => this.#look(done)
  }

  #look(done: (state: FolderState) => void): void {
    const disk = this.#disk
    const host = this.#host
    disk.later(host, () => {
      if (!disk.trouble.removed) return done({ kind: 'own' })
      // From here on the member has nothing more to say.
      host.failed?.()
      done({ kind: 'lost', why: `the data folder ${disk.path} is gone` })
    })
  }

  list(): string[] {
    return [...this.#disk.folder.names.keys()].sort()
  }

  size(name: string): number {
    return this.#inode(name).size
  }

  read(name: string, offset = 0, length?: number): Uint8Array {
    const disk = this.#disk
    const inode = this.#inode(name)
    const bytes = inode.read(offset, length ?? inode.size)
    if (!disk.trouble.misdirect || bytes.length < 2 * SECTOR) return bytes
    // One sector is what stands at another place of the same file. Never a blank one: that could not be told from a write
    // which never happened, and what was acknowledged would be lost without anybody being wrong.
    const written = sectorsOf(bytes).filter((at) => !allZero(bytes, at, at + SECTOR))
    if (written.length < 2) return bytes
    disk.trouble.misdirect = false
    disk.altered = true
    const from = written[disk.pick(written.length)] as number
    const to = written[disk.pick(written.length)] as number
    bytes.copyWithin(to, from, from + SECTOR)
    return bytes
  }

  open(name: string): DiskFile {
    return new MountedFile(name, this.#inode(name), this.#disk, this.#host)
  }

  create(name: string, size: number, done: (error: Error | undefined, file?: DiskFile) => void): void {
    const disk = this.#disk
    const host = this.#host
    if (!host.effect('create')) return
    const fail = (error: Error): void => disk.later(host, () => done(error))
    if (disk.trouble.removed) return fail(new DiskError('ENOENT', `${disk.path}/${name}`))
    if (disk.trouble.readOnly) return fail(new DiskError('EROFS', name))
    if (disk.folder.names.has(name)) return fail(new DiskError('EEXIST', name))
    const { room } = disk
    // As much of it as there is room for is there until the failure is noticed.
    const inode = Inode.growing(Math.min(size, room))
    disk.folder.link(name, inode)
    disk.later(host, () => {
      if (!host.effect('created')) return
      if (size > room) {
        disk.folder.unlink(name)
        return done(new DiskFullError(`${disk.path}/${name}`))
      }
      if (disk.trouble.failSync) {
        disk.trouble.failSync = false
        disk.folder.unlink(name)
        disk.counts.failures++
        return done(new DiskError('EIO', name))
      }
      inode.sync()
      if (disk.faults.folderSynced) disk.folder.sync()
      done(undefined, new MountedFile(name, inode, disk, host))
    })
  }

  rename(from: string, to: string): void {
    this.#inode(from)
    if (!this.#change('rename', from)) return
    this.#disk.folder.rename(from, to)
    if (this.#disk.faults.folderSynced) this.#disk.folder.sync()
  }

  remove(name: string): void {
    this.#inode(name)
    if (!this.#change('remove', name)) return
    this.#disk.folder.unlink(name)
    if (this.#disk.faults.folderSynced) this.#disk.folder.sync()
  }

  syncFolder(): void {
    if (this.#change('syncFolder', '.')) this.#disk.folder.sync()
  }

  #change(what: DiskEffect, name: string): boolean {
    if (!this.#host.effect(what)) return false
    if (this.#disk.trouble.readOnly) throw new DiskError('EROFS', name)
    return true
  }

  #inode(name: string): Inode {
    const inode = this.#disk.folder.names.get(name)
    if (!inode) throw new DiskError('ENOENT', `${this.path}/${name}`)
    return inode
  }
}

class MountedFile implements DiskFile {
  #busy = false
  #closed = false

  readonly #inode: Inode
  readonly #disk: SimulatedDisk
  readonly #host: DiskHost

  constructor(
    readonly name: string,
    inode: Inode,
    disk: SimulatedDisk,
    host: DiskHost,
  ) {
    this.#inode = inode
    this.#disk = disk
    this.#host = host
  }

  write(offset: number, chunks: readonly Uint8Array[], sync: boolean, done: Done): void {
    this.#begin()
    const host = this.#host
    const disk = this.#disk
    if (!host.effect('write')) return
    const problem = this.#problem() ?? this.#put(offset, chunks)
    disk.later(host, () => {
      if (!host.effect('written')) return
      this.#busy = false
      const failed = problem ?? (sync ? this.#sync() : undefined)
      if (failed) host.failed?.()
      done(failed)
    })
  }

  writeSync(offset: number, chunks: readonly Uint8Array[]): void {
    this.#begin()
    this.#busy = false
    const host = this.#host
    if (!host.effect('write')) return
    const problem = this.#problem()
    if (problem) throw this.#told(problem)
    const full = this.#put(offset, chunks)
    // The process may die between the write and the end of its sync.
    if (!host.effect('written')) return
    const failed = full ?? this.#sync()
    if (failed) throw this.#told(failed)
  }

  #told(error: Error): Error {
    this.#host.failed?.()
    return error
  }

  close(): void {
    this.#closed = true
  }

  #begin(): void {
    if (this.#closed) throw new Error(`write to the closed file ${this.name}`)
    if (this.#busy) throw new Error(`a second write to ${this.name} while one is under way`)
    this.#busy = true
  }

  #problem(): Error | undefined {
    const { trouble } = this.#disk
    if (trouble.readOnly) return new DiskError('EROFS', this.name)
    if (!trouble.failWrite) return undefined
    trouble.failWrite = false
    this.#disk.counts.failures++
    return new DiskError('EIO', this.name)
  }

  /** Up to the byte at which the disk is full, if that comes first. */
  #put(offset: number, chunks: readonly Uint8Array[]): Error | undefined {
    const disk = this.#disk
    const inode = this.#inode
    disk.counts.writes++
    const end = inode.size + disk.room
    let at = offset
    for (const chunk of chunks) {
      if (at + chunk.length > end) {
        inode.write(at, chunk.subarray(0, Math.max(0, end - at)))
        disk.counts.failures++
        return new DiskFullError(`${disk.path}/${this.name}`)
      }
      inode.write(at, chunk)
      at += chunk.length
    }
    return undefined
  }

  #sync(): Error | undefined {
    const disk = this.#disk
    const inode = this.#inode
    if (disk.trouble.failSync) {
      disk.trouble.failSync = false
      disk.dropPages(inode)
      return new DiskError('EIO', this.name)
    }
    disk.counts.syncs++
    inode.sync()
    return undefined
  }
}
