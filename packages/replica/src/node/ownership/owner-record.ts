import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/** Who owns a data folder, as its `owner.<n>` file says. */
export interface OwnerRecord {
  readonly name: string
  readonly host: string
  /** Changes with every start of the machine; '' where it cannot be known. */
  readonly boot: string
  /** Where the owner listens while it lives: a name in the folder, or a path. */
  readonly socket: string
  /** For people; decides nothing. */
  readonly pid: number
  /** Minted by this owner: whether the folder at a path is its folder. Older versions have none, nor a path. */
  readonly nonce?: string
  /** Real path of the folder that a member last started in. Another path is that of a copy, or of a moved folder. */
  readonly path?: string
}

const OWNER = /^owner\.(\d{1,15})$/

/** The highest number among `owner.<n>` files; 0: none. */
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
    // Not every system has one; the name must do.
  }
  return `${hostname()}/${machine}`
}

export function bootId(): string {
  try {
    if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    if (process.platform === 'darwin')
      return execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim()
  } catch {
    // Unknown: equal on the same machine, so that the socket decides.
  }
  return `unknown/${hostId()}`
}
