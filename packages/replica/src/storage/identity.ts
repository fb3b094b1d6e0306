import { crc32 } from '@leasehold/core'
import type { Disk, Random } from '../platform.js'
import { damaged, otherFormat } from './storage-errors.js'

export const IDENTITY_FILE = 'identity'
const FORMAT_VERSION = 1
const NODE_BITS_HIGH = 2 ** 20

/** The identity of the member of a data folder. Written once; a recover or restore creates another one. */
export interface Identity {
  /** Random, minted on an empty disk, so that a wiped member counts as a new one. A safe integer ≥ 1. */
  readonly node: number
  /** The member's name. */
  readonly name: string
  /** 32 hex digits. */
  readonly cluster: string
  readonly epoch: number
}

/** Mints a node number: 52 random bits, so that two members never get the same. */
export function mintNode(random: Random): number {
  return random.below(NODE_BITS_HIGH) * 2 ** 32 + random.below(2 ** 32 - 1) + 1
}

/** Mints a cluster id: 32 hex digits. */
export function mintCluster(random: Random): string {
  return Array.from(random.bytes(16), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Returns the seed for the checksums of this member's log. */
export function identitySeed(identity: Identity): number {
  return crc32(new TextEncoder().encode(String(identity.node)))
}

/** Reads the identity; undefined without a file. @throws StorageError if the file is damaged or has another format */
export function readIdentity(disk: Disk): Identity | undefined {
  if (!disk.list().includes(IDENTITY_FILE)) return undefined
  const file = `${disk.path}/${IDENTITY_FILE}`
  const [json = '', sum = ''] = new TextDecoder().decode(disk.read(IDENTITY_FILE)).split('\n')
  if (sum !== checksum(json)) throw damaged(file, 0, 'its content does not match its checksum')
  const { format, ...identity } = JSON.parse(json) as Identity & { format: number }
  if (format !== FORMAT_VERSION) throw otherFormat(file, format, FORMAT_VERSION)
  return identity
}

/** Writes the identity atomically. It is durable when `done` runs without an error. */
export function writeIdentity(disk: Disk, identity: Identity, done: (error: Error | undefined) => void): void {
  const json = JSON.stringify({ format: FORMAT_VERSION, ...identity })
  const bytes = new TextEncoder().encode(`${json}\n${checksum(json)}\n`)
  const temporary = `${IDENTITY_FILE}.tmp`
  disk.create(temporary, bytes.length, (createError, file) => {
    if (!file) return done(createError)
    file.write(0, [bytes], true, (writeError) => {
      file.close()
      if (writeError) return done(writeError)
      try {
        disk.rename(temporary, IDENTITY_FILE)
        disk.syncFolder()
        done(undefined)
      } catch (error) {
        done(error as Error)
      }
    })
  })
}

function checksum(json: string): string {
  return crc32(new TextEncoder().encode(json)).toString(16).padStart(8, '0')
}
