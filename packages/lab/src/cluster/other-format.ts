import { crc32 } from '@leasehold/core'
import { frameExtent, identitySeed, parseSegmentName, readIdentity, segmentSeed } from '@leasehold/replica'
import type { Inode } from './disk/inode.js'
import type { SimulatedDisk } from './disk/disk.js'

/** What of a data folder is written in another format. */
export type FormatOf = 'identity' | 'log' | 'snapshot'

const FRAME_HEADER = 32
const SNAPSHOT_HEADER = 36

/**
 * Makes files of a member that does not run look as if a later version of the program had written them: everything in them is
 * whole, with its checksums, and only the format's number is another one. `log`: its last frame; `snapshot`: the newest.
 * Returns the name of the file, or undefined when there is none.
 */
export function writeInFormat(disk: SimulatedDisk, what: FormatOf, format: number): string | undefined {
  const files = [...disk.folder.names].filter(([name]) => FILES[what].test(name)).sort(([a], [b]) => (a < b ? 1 : -1))
  // The newest one that has anything in it: log files are made before they are needed.
  const chosen = files.find(([, inode]) => inode.bytes[0] !== 0)
  if (chosen === undefined) return undefined
  const [name, inode] = chosen
  if (what === 'identity') writeIdentityIn(inode, format)
  else if (what === 'snapshot') writeSnapshotIn(inode, format)
  else writeLastFrameIn(name, inode, nodeOf(disk), format)
  inode.sync()
  disk.altered = true
  return name
}

const FILES: Readonly<Record<FormatOf, RegExp>> = { identity: /^identity$/, log: /^log-/, snapshot: /^snapshot-/ }

function nodeOf(disk: SimulatedDisk): number {
  const identity = readIdentity(disk.mount({ after: () => {}, effect: () => true }))
  if (!identity) throw new Error(`${disk.path} has no identity`)
  return identitySeed(identity)
}

function writeIdentityIn(inode: Inode, format: number): void {
  const [json = ''] = new TextDecoder().decode(inode.bytes.subarray(0, inode.size)).split('\n')
  const text = JSON.stringify({ ...(JSON.parse(json) as object), format })
  const sum = crc32(new TextEncoder().encode(text)).toString(16).padStart(8, '0')
  const bytes = new TextEncoder().encode(`${text}\n${sum}\n`)
  inode.write(0, bytes)
  inode.size = bytes.length
}

function writeSnapshotIn(inode: Inode, format: number): void {
  const bytes = inode.read(0, inode.size)
  const view = new DataView(bytes.buffer)
  view.setUint32(4, format, true)
  view.setUint32(SNAPSHOT_HEADER - 4, crc32(bytes.subarray(0, SNAPSHOT_HEADER - 4)), true)
  const end = SNAPSHOT_HEADER + view.getUint32(24, true) + view.getUint32(28, true)
  view.setUint32(end, crc32(bytes.subarray(0, end)), true)
  inode.write(0, bytes)
}

function writeLastFrameIn(name: string, inode: Inode, identity: number, format: number): void {
  const segment = parseSegmentName(name)
  if (!segment) throw new Error(`${name} is not a log file`)
  const seed = segmentSeed(identity, segment)
  const bytes = inode.read(0, inode.size)
  const view = new DataView(bytes.buffer)
  const length = (at: number): number => view.getUint32(at + 8, true)
  let last = 0
  for (let at = 0; at + FRAME_HEADER <= bytes.length && bytes[at] !== 0; at += frameExtent(length(at))) last = at
  const from = last + FRAME_HEADER
  view.setUint32(last + 4, format, true)
  const body = bytes.subarray(from, from + length(last))
  view.setUint32(last + 20, crc32(body, crc32(bytes.subarray(last, last + 20), seed)), true)
  view.setUint32(last + 28, crc32(bytes.subarray(last, last + 28), seed), true)
  inode.write(last, bytes.subarray(last, from))
}
