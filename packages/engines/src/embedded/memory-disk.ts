import type { Disk, DiskFile, Done } from '@leasehold/replica'
import { StorageError } from '@leasehold/core'

/** A data folder in memory, for `memory:` services: the same member runs on it as on a real disk. */
export class MemoryDisk implements Disk {
  readonly path: string
  readonly #files = new Map<string, MemoryFile>()

  constructor(name: string) {
    this.path = `memory:${name}`
  }

  list(): string[] {
    return [...this.#files.keys()].sort()
  }

  size(name: string): number {
    return this.#file(name).bytes.length
  }

  read(name: string, offset = 0, length?: number): Uint8Array {
    const { bytes } = this.#file(name)
    return bytes.slice(offset, length === undefined ? undefined : offset + length)
  }

  open(name: string): DiskFile {
    return this.#file(name)
  }

  create(name: string, size: number, done: (error: Error | undefined, file?: DiskFile) => void): void {
    const file = new MemoryFile(name, size)
    queueMicrotask(() => {
      if (this.#files.has(name)) return done(new StorageError(`${this.path}/${name} exists already`))
      this.#files.set(name, file)
      done(undefined, file)
    })
  }

  rename(from: string, to: string): void {
    const file = this.#file(from)
    this.#files.delete(from)
    file.name = to
    this.#files.set(to, file)
  }

  remove(name: string): void {
    this.#file(name)
    this.#files.delete(name)
  }

  syncFolder(): void {}

  #file(name: string): MemoryFile {
    const file = this.#files.get(name)
    if (!file) throw new StorageError(`${this.path}/${name} does not exist`)
    return file
  }
}

class MemoryFile implements DiskFile {
  bytes: Uint8Array

  constructor(
    public name: string,
    size: number,
  ) {
    this.bytes = new Uint8Array(size)
  }

  write(offset: number, chunks: readonly Uint8Array[], _sync: boolean, done: Done): void {
    this.writeSync(offset, chunks)
    queueMicrotask(() => done(undefined))
  }

  writeSync(offset: number, chunks: readonly Uint8Array[]): void {
    let at = offset
    for (const chunk of chunks) {
      const end = at + chunk.length
      if (end > this.bytes.length) {
        const grown = new Uint8Array(Math.max(end, this.bytes.length * 2))
        grown.set(this.bytes)
        this.bytes = grown
      }
      this.bytes.set(chunk, at)
      at = end
    }
  }

  close(): void {}
}
