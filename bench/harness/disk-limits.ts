import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const BLOCK = new Uint8Array(64).fill(1)
const FILE_BYTES = 8 * 1024 * 1024

/** Flushes per second that the disk takes, one after another: of a file that grows, and of one that is overwritten. */
export function diskLimits(seconds: number): { readonly appending: number; readonly overwriting: number } {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-disk-'))
  try {
    return {
      appending: flushes(join(folder, 'grows'), 0, seconds),
      overwriting: flushes(join(folder, 'stays'), FILE_BYTES, seconds),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function flushes(file: string, size: number, seconds: number): number {
  const fd = openSync(file, 'w+')
  try {
    if (size > 0) writeSync(fd, new Uint8Array(size), 0, size, 0)
    fdatasyncSync(fd)
    const start = performance.now()
    let count = 0
    for (; performance.now() - start < seconds * 1000; count++) {
      writeSync(fd, BLOCK, 0, BLOCK.length, (count * BLOCK.length) % FILE_BYTES)
      fdatasyncSync(fd)
    }
    return Math.round((count / (performance.now() - start)) * 1000)
  } finally {
    closeSync(fd)
  }
}
