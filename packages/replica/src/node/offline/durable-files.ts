import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { writeFailed } from '../../storage/storage-errors.js'
import { syncFolder } from '../folder-sync.js'

/**
 * Writes a complete file or none, durably. Only the file's owner may read it.
 * @throws StorageError
 */
export function writeWhole(file: string, pieces: Iterable<Uint8Array>): void {
  const draft = `${file}.tmp`
  try {
    const fd = fs.openSync(draft, 'w', 0o600)
    try {
      for (const piece of pieces) writeAll(fd, piece)
      fs.fsyncSync(fd)
    } finally {
      fs.closeSync(fd)
    }
    fs.renameSync(draft, file)
    syncFolder(dirname(file))
  } catch (error) {
    fs.rmSync(draft, { force: true })
    throw writeFailed(file, error)
  }
}

/** Makes a file's content and name durable: a killed process may have left both unsynced. @throws StorageError */
export function syncWhole(file: string): void {
  try {
    const fd = fs.openSync(file, 'r+')
    try {
      fs.fsyncSync(fd)
    } finally {
      fs.closeSync(fd)
    }
    syncFolder(dirname(file))
  } catch (error) {
    throw writeFailed(file, error)
  }
}

/** Appends to a file durably. */
export function appendDurably(file: string, text: string): void {
  const fd = fs.openSync(file, 'a', 0o600)
  try {
    writeAll(fd, Buffer.from(text))
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
  syncFolder(dirname(file))
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at, bytes.length - at)
}
