import { crc32 } from '@leasehold/core'
import type { Disk, Random } from '../platform.js'
import { damaged, otherFormat } from './storage-errors.js'

export const IDENTITY_FILE = 'identity'
const FORMAT_VERSION = 1
const NODE_BITS_HIGH = 2 ** 20

/** Who the member of a data folder is. Written once; only a restore from a backup makes another one. */
export interface Identity {
  /** Minted at random on an empty disk: a wiped member is a new one. A safe integer ≥ 1. */
  readonly node: number
  /** The member's name, as people know it. */
  readonly name: string
  /** 32 hex digits; '' until the cluster is founded or joined. */
  readonly cluster: string
  readonly epoch: number
}

/** A new node number: 52 random bits, so that two members never get the same. */
export function mintNode(random: Random): number {
  return random.below(NODE_BITS_HIGH) * 2 ** 32 + random.below(2 ** 32 - 1) + 1
}

/** A new cluster's id: 32 hex digits. */
export function mintCluster(random: Random): string {
  return Array.from(random.bytes(16), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Seeds the checksums of this member's log. */
export function identitySeed(identity: Identity): number {
  return crc32(new TextEncoder().encode(String(identity.node)))
}

/** @throws StorageError if the file is there but not whole, or of a later format */
export function readIdentity(disk: Disk): Identity | undefined {
  if (!disk.list().includes(IDENTITY_FILE)) return undefined
  const file = `${disk.path}/${IDENTITY_FILE}`
  const [json = '', sum = ''] = new TextDecoder().decode(disk.read(IDENTITY_FILE)).split('\n')
  if (sum !== checksum(json)) throw damaged(file, 0, 'its content does not match its checksum')
  const { format, ...identity } = JSON.parse(json) as Identity & { format: number }
  if (format !== FORMAT_VERSION) throw otherFormat(file, format, FORMAT_VERSION)
  return identity
}

/** Atomic and durable when `done` runs without an error. */
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
