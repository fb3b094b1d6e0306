import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/** The content of an `owner.<n>` file: the owner of a data folder. */
export interface OwnerRecord {
  readonly name: string
  readonly host: string
  /** Changes with every boot of the machine. */
  readonly boot: string
  /** The socket on which the owner listens while it is alive: a name in the folder, or a path. */
  readonly socket: string
  /** Informational only. */
  readonly pid: number
  /** Random id of this owner, which identifies its folder. Older versions have neither nonce nor path. */
  readonly nonce?: string
  /** Real path of the folder in which a member last started. A different path means a copy or a moved folder. */
  readonly path?: string
}

const OWNER = /^owner\.(\d{1,15})$/

/** Returns the highest number among `owner.<n>` files; 0 when there is none. */
export function highestOf(names: readonly string[]): number {
  return Math.max(0, ...ownersOf(names))
}

export function ownersOf(names: readonly string[]): number[] {
  return names.flatMap((name) => {
    const match = OWNER.exec(name)
    return match ? [Number(match[1])] : []
  })
}

export function hostId(): string {
  let machine = ''
  try {
    machine = readFileSync('/etc/machine-id', 'utf8').trim()
  } catch {
    // Not every system has one: use the host name alone.
  }
  return `${hostname()}/${machine}`
}

export function bootId(): string {
  try {
    if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    if (process.platform === 'darwin')
      return execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim()
  } catch {
    // Unknown: use a value that is constant on this machine, so that the socket decides.
  }
  return `unknown/${hostId()}`
}
