import { type Disk, type DiskFile, DiskFullError, type Done } from '../../src/platform.js'

const SECTOR = 512

/** Whole numbers 0 ≤ n < limit, the same row for the same seed. */
export function seeded(seed: number): (limit: number) => number {
  let state = (seed ^ 0x9e3779b9) >>> 0
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) % limit
  }
}

interface Inode {
  durable: Uint8Array
  current: Uint8Array
  /** Sectors that differ between the two. */
  dirty: Set<number>
}

type Task = () => void

/** Thrown by changes of the disk after the process has died. */
export class KilledError extends Error {}

/**
 * A disk in memory that fails the way disks do. Writes reach `durable` only by a sync; a crash keeps any subset of the
 * unsynced sectors, and of the unsynced folder changes any prefix or any subset. A kill keeps all of them readable, and
 * unsynced. Completions run when the test calls `run`.
 */
export class SimDisk implements Disk {
  readonly path = 'sim'
  /** Bytes that can still be allocated. */
  room = Number.POSITIVE_INFINITY
  /** The n-th sync from now on fails (1: the next); the dirty data is gone, and a later sync succeeds. */
  failSync = 0
  /** After a failed sync the data can still be read, and looks clean: no later sync writes it. */
  failedSyncKeepsPages = false
  /** The n-th write from now on fails. */
  failWrite = 0
  /** The process is killed right before its n-th change of the disk from now on (1: the next); then call `kill`. */
  dieAt = 0
  syncs = 0
  private folder = new Map<string, Inode>()
  private durableFolder = new Map<string, Inode>()
  private folderChanges: ((folder: Map<string, Inode>) => void)[] = []
  private tasks: Task[] = []
  private generation = 0
  private dead = false

  /** Runs pending completions, and those that they cause. */
  run(limit = 100_000): void {
    for (let n = 0; this.tasks.length > 0; n++) {
      if (n === limit) throw new Error('the disk never comes to rest')
      ;(this.tasks.shift() as Task)()
    }
  }

  get idle(): boolean {
    return this.tasks.length === 0
  }

  runOne(): boolean {
    const task = this.tasks.shift()
    task?.()
    return task !== undefined
  }

  /** Kills the process only: pending completions never run, nothing more is synced, and all writes remain readable. */
  kill(): void {
    this.generation++
    this.tasks = []
    this.dead = false
    this.dieAt = 0
  }

  /** Whether a power failure could lose anything. */
  get unsynced(): boolean {
    return this.folderChanges.length > 0 || [...this.folder.values()].some((inode) => inode.dirty.size > 0)
  }

  /** Power failure: pending completions never run. `choose` decides which unsynced sectors and folder changes survive. */
  crash(choose: (limit: number) => number): void {
    this.kill()
    const inOrder = choose(2) === 0
    const kept = choose(this.folderChanges.length + 1)
    const survive = this.folderChanges.filter((_, i) => (inOrder ? i < kept : choose(2) === 1))
    for (const change of survive) change(this.durableFolder)
    this.folderChanges = []
    this.folder = new Map(this.durableFolder)
    for (const inode of new Set(this.folder.values())) {
      for (const sector of [...inode.dirty].sort((a, b) => a - b)) {
        if (choose(2) === 1) copySector(inode.current, inode.durable, sector)
      }
      inode.current = inode.durable.slice()
      inode.dirty.clear()
    }
    this.failSync = 0
    this.failWrite = 0
  }

  /** The current content of a file, as readable. */
  bytes(name: string): Uint8Array {
    return this.inode(name).current
  }

  /** Replaces content on the medium itself. */
  overwrite(name: string, bytes: Uint8Array): void {
    const inode = this.inode(name)
    inode.current = bytes.slice()
    inode.durable = bytes.slice()
    inode.dirty.clear()
  }

  /** Changes what can be read, and not what is on the medium; no sync will write it. */
  pretend(name: string, bytes: Uint8Array): void {
    this.inode(name).current = bytes.slice()
  }

  clone(): SimDisk {
    const copy = new SimDisk()
    for (const [name, inode] of this.folder) {
      const twin = { durable: inode.current.slice(), current: inode.current.slice(), dirty: new Set<number>() }
      copy.folder.set(name, twin)
      copy.durableFolder.set(name, twin)
    }
    return copy
  }

  list(): string[] {
    return [...this.folder.keys()].sort()
  }

  size(name: string): number {
    return this.inode(name).current.length
  }

  read(name: string, offset = 0, length?: number): Uint8Array {
    const { current } = this.inode(name)
    return current.slice(offset, length === undefined ? undefined : offset + length)
  }

  open(name: string): DiskFile {
    return this.handle(name, this.inode(name))
  }

  create(name: string, size: number, done: (error: Error | undefined, file?: DiskFile) => void): void {
    this.later(() => {
      if (this.folder.has(name)) return done(new Error(`${name} exists`))
      if (this.room < size) return done(new DiskFullError(name))
      this.room -= size
      if (this.dies()) return
      const inode = { durable: new Uint8Array(size), current: new Uint8Array(size), dirty: new Set<number>() }
      this.change((folder) => folder.set(name, inode))
      done(undefined, this.handle(name, inode))
    })
  }

  rename(from: string, to: string): void {
    const inode = this.inode(from)
    this.live()
    this.change((folder) => {
      folder.delete(from)
      folder.set(to, inode)
    })
  }

  remove(name: string): void {
    this.inode(name)
    this.live()
    this.room += this.inode(name).current.length
    this.change((folder) => folder.delete(name))
  }

  syncFolder(): void {
    this.live()
    for (const change of this.folderChanges) change(this.durableFolder)
    this.folderChanges = []
  }

  private inode(name: string): Inode {
    const inode = this.folder.get(name)
    if (!inode) throw new Error(`no file ${name}`)
    return inode
  }

  private change(change: (folder: Map<string, Inode>) => void): void {
    change(this.folder)
    this.folderChanges.push(change)
  }

  private later(task: Task): void {
    const { generation } = this
    this.tasks.push(() => {
      if (generation === this.generation) task()
    })
  }

  private handle(name: string, inode: Inode): DiskFile {
    let busy = false
    return {
      name,
      write: (offset: number, chunks: readonly Uint8Array[], sync: boolean, done: Done) => {
        if (busy) throw new Error(`second write to ${name}`)
        busy = true
        if (this.dies()) return
        try {
          this.put(inode, offset, chunks)
        } catch (error) {
          return this.later(() => {
            busy = false
            done(error as Error)
          })
        }
        this.later(() => {
          if (sync && this.dies()) return
          busy = false
          let failure: Error | undefined
          try {
            if (sync) this.sync(inode)
          } catch (error) {
            failure = error as Error
          }
          done(failure)
        })
      },
      writeSync: (offset: number, chunks: readonly Uint8Array[]) => {
        if (busy) throw new Error(`second write to ${name}`)
        this.live()
        this.put(inode, offset, chunks)
        this.live()
        this.sync(inode)
      },
      close: () => {},
    }
  }

  /** Counts a change. Returns whether the process is dead. */
  private dies(): boolean {
    if (this.dieAt > 0 && --this.dieAt === 0) this.dead = true
    return this.dead
  }

  private live(): void {
    if (this.dies()) throw new KilledError('killed')
  }

  private put(inode: Inode, offset: number, chunks: readonly Uint8Array[]): void {
    if (this.failWrite > 0 && --this.failWrite === 0) throw new Error('EIO: write failed')
    let at = offset
    for (const chunk of chunks) {
      if (at + chunk.length > inode.current.length) throw new Error('write beyond the allocated file')
      inode.current.set(chunk, at)
      for (let s = Math.floor(at / SECTOR); s * SECTOR < at + chunk.length; s++) inode.dirty.add(s)
      at += chunk.length
    }
  }

  private sync(inode: Inode): void {
    this.syncs++
    if (this.failSync > 0 && --this.failSync === 0) {
      // The kernel marks the pages clean: what was written is lost, at once or with the power, and no later sync fails.
      if (!this.failedSyncKeepsPages) for (const sector of inode.dirty) copySector(inode.durable, inode.current, sector)
      inode.dirty.clear()
      throw new Error('EIO: sync failed')
    }
    for (const sector of inode.dirty) copySector(inode.current, inode.durable, sector)
    inode.dirty.clear()
  }
}

function copySector(from: Uint8Array, to: Uint8Array, sector: number): void {
  to.set(from.subarray(sector * SECTOR, (sector + 1) * SECTOR), sector * SECTOR)
}
