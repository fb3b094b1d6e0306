import { CodecError, crc32, Reader, Writer } from '@leasehold/core'
import type { Identity } from '../storage/identity.js'
import { type Disk, type DiskFile, DiskFullError, type Logger } from '../platform.js'
import { writeFailed } from '../storage/storage-errors.js'
import { type AcknowledgedMemory, readAcknowledged } from './acknowledged-memory.js'

export const ACKNOWLEDGED_FILE = 'acknowledged'
const FORMAT_VERSION = 1
/** Two copies; each write replaces the older one, so that a torn write leaves the other. */
const COPIES = 2
/** Size of one copy. Also bounds the memory: further members are not saved. */
const COPY_BYTES = 4096
/** Length and checksum. */
const HEAD_BYTES = 8

export interface AcknowledgedFileOptions {
  readonly disk: Disk
  readonly identity: Identity
  readonly memory: AcknowledgedMemory
  readonly log: Logger
  readonly guard: (action: () => void) => void
}

/**
 * Persists the memory of acknowledged entries in a file of fixed size, one write at a time. It blocks only for the folder's
 * sync after creating the file, once in a member's life. The file is optional: if it is missing, damaged or from another
 * member, the memory starts empty. A failed write stops the member, like every failed write.
 */
export class AcknowledgedFile {
  readonly #options: AcknowledgedFileOptions
  #file: DiskFile | undefined
  #isWriting = false
  #isClosed = false
  #sequence = 0
  #saved = 0

  constructor(options: AcknowledgedFileOptions) {
    this.#options = options
    const { disk, memory } = options
    if (!disk.list().includes(ACKNOWLEDGED_FILE)) return
    if (disk.size(ACKNOWLEDGED_FILE) !== COPIES * COPY_BYTES) {
      disk.remove(ACKNOWLEDGED_FILE)
      return
    }
    this.#load(disk.read(ACKNOWLEDGED_FILE))
    this.#file = disk.open(ACKNOWLEDGED_FILE)
    this.#saved = memory.version
  }

  get isSaving(): boolean {
    return this.#isWriting
  }

  /** Saves the memory if it has changed. Does nothing during a write: the next call saves the change. */
  save(): void {
    const { disk, memory, guard, log } = this.#options
    if (this.#isWriting || this.#isClosed || memory.version === this.#saved) return
    this.#isWriting = true
    if (this.#file) return this.#write(this.#file)
    disk.create(ACKNOWLEDGED_FILE, COPIES * COPY_BYTES, (error, file) => {
      if (this.#isClosed) return file?.close()
      guard(() => {
        this.#isWriting = false
        if (error instanceof DiskFullError) log.warn('no room to save what members have acknowledged')
        else if (!file) throw writeFailed(`${disk.path}/${ACKNOWLEDGED_FILE}`, error)
        else {
          this.#file = file
          this.#syncFolder()
          this.save()
        }
      })
    })
  }

  close(): void {
    this.#isClosed = true
    this.#file?.close()
  }

  #syncFolder(): void {
    const { disk } = this.#options
    try {
      disk.syncFolder()
    } catch (error) {
      throw writeFailed(disk.path, error)
    }
  }

  #write(file: DiskFile): void {
    const { disk, memory, guard } = this.#options
    const { version } = memory
    const sequence = this.#sequence + 1
    file.write((sequence % COPIES) * COPY_BYTES, [this.#encode(sequence)], true, (error) =>
      guard(() => {
        this.#isWriting = false
        if (error) throw writeFailed(`${disk.path}/${ACKNOWLEDGED_FILE}`, error)
        this.#sequence = sequence
        this.#saved = version
      }),
    )
  }

  #encode(sequence: number): Uint8Array {
    const { memory, identity } = this.#options
    const writer = new Writer()
    writer.u8(FORMAT_VERSION)
    writer.varuint(sequence)
    writer.hex128(identity.cluster)
    writer.varuint(identity.epoch)
    writer.varuint(identity.node)
    memory.write(writer)
    const content = writer.take()
    const copy = new Writer()
    copy.u32(content.length)
    copy.u32(crc32(content))
    copy.raw(content)
    return copy.take()
  }

  #load(bytes: Uint8Array): void {
    for (let copy = 0; copy < COPIES; copy++) {
      try {
        this.#loadCopy(bytes.subarray(copy * COPY_BYTES, (copy + 1) * COPY_BYTES))
      } catch (error) {
        if (!(error instanceof CodecError)) throw error
      }
    }
  }

  /** Loads one copy if it is whole and this member's. Loading both equals loading the newer: entries only advance. */
  #loadCopy(bytes: Uint8Array): void {
    const head = new Reader(bytes)
    const [length, checksum] = [head.u32(), head.u32()]
    if (length === 0 || length > COPY_BYTES - HEAD_BYTES) return
    const content = head.raw(length)
    if (crc32(content) !== checksum) return
    const reader = new Reader(content)
    if (reader.u8() !== FORMAT_VERSION) return
    const sequence = reader.varuint()
    const { memory, identity } = this.#options
    if (reader.hex128() !== identity.cluster) return
    if (reader.varuint() !== identity.epoch || reader.varuint() !== identity.node) return
    for (const [node, entry] of readAcknowledged(reader)) memory.note(node, entry)
    this.#sequence = Math.max(this.#sequence, sequence)
  }
}
