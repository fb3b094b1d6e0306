import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import type * as net from 'node:net'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { StorageError } from '@leasehold/core'
import { IDENTITY_FILE } from '../../storage/identity.js'
import { folderFailed } from '../../storage/storage-errors.js'
import { type FolderOwner, OwnedFolder } from './owned-folder.js'
import { bootId, highestOf, hostId, type OwnerRecord, ownersOf } from './owner-record.js'
import { answers, listen, SocketFolder } from './owner-socket.js'

export type { FolderOwner } from './owned-folder.js'

export interface ClaimOptions {
  /** Name of the owner, for error messages. */
  readonly name?: string
  /** Takes over the folder from an owner on another machine, whose state cannot be checked from here. */
  readonly takeOver?: boolean
  /**
   * Whether a member will serve from this folder. It must not be a copy of a folder whose owner is alive. Default false: reading
   * a copy is harmless, and does not make it an original.
   */
  readonly serving?: boolean
}

const CLAIM_ATTEMPTS = 10

/**
 * Makes this process the only owner of a data folder.
 *
 * Files `owner.<n>` are only added, and the highest one wins. A process checks that the highest owner is dead, creates the next
 * file, and lists the folder again: it fails if its file is not the highest, and only the highest owner deletes lower files.
 * (Deleting before creating would admit two owners.) An owner is dead when the machine is the same, has not been rebooted, and
 * no process listens on the owner's socket; or when the machine is the same and has been rebooted. Process ids and ages are
 * not used.
 *
 * @throws StorageError when the folder has a living owner, or one on another machine, or cannot be written
 */
export async function claimFolder(path: string, options: ClaimOptions = {}): Promise<FolderOwner> {
  const dir = resolve(path)
  let folder: SocketFolder | undefined
  let server: net.Server | undefined
  try {
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
    folder = new SocketFolder(dir)
    const socket = folder.newName()
    server = await listen(folder.pathOf(socket))
    const nonce = randomBytes(16).toString('hex')
    const owner = { name: options.name ?? '', host: hostId(), boot: bootId(), socket, pid: process.pid, nonce }
    const number = await claimNumber(dir, folder, owner, options)
    deleteLower(dir, folder, number)
    return new OwnedFolder({ dir, number, nonce, sockets: folder, server })
  } catch (error) {
    server?.close()
    folder?.close()
    throw folderFailed(dir, error)
  }
}

type NewOwner = Omit<OwnerRecord, 'path'>

async function claimNumber(dir: string, folder: SocketFolder, owner: NewOwner, options: ClaimOptions): Promise<number> {
  const here = fs.realpathSync(dir)
  for (let attempt = 0; attempt < CLAIM_ATTEMPTS; attempt++) {
    const highest = highestOf(fs.readdirSync(dir))
    let path = here
    if (highest > 0) {
      const last = readOwner(join(dir, `owner.${highest}`), options.takeOver ?? false)
      if (last === 'gone') continue
      if (last !== 'unreadable') {
        await checkDead(dir, folder, last, options.takeOver ?? false)
        if (options.serving === true) await checkNoCopy(here, highest, last)
        else path = last.path ?? here
      }
    }
    if (!createOwner(dir, highest + 1, { ...owner, path })) continue
    if (highestOf(fs.readdirSync(dir)) === highest + 1) return highest + 1
    throw new StorageError(`${dir} was taken by another process a moment ago`, { hint: 'only one process can own it' })
  }
  throw new StorageError(`${dir}: too many processes want this folder at once`, { hint: 'retry' })
}

/** Reads an owner file. Throws when it is unreadable, unless the operator takes over. */
function readOwner(file: string, takeOver: boolean): OwnerRecord | 'gone' | 'unreadable' {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')) as OwnerRecord
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'gone'
    if (takeOver) return 'unreadable'
    throw new StorageError(`${file} cannot be read: ${(error as Error).message}`, {
      cause: error,
      hint: 'if you know that no other process uses this folder: --take-over',
    })
  }
}

/** Throws unless the last owner is known to be dead. */
async function checkDead(dir: string, folder: SocketFolder, owner: OwnerRecord, takeOver: boolean): Promise<void> {
  if (owner.boot === bootId()) {
    if (!(await answers(folder.pathOf(owner.socket)))) return
    throw new StorageError(`${dir} is in use by ${textOf(owner)}`, { hint: 'stop it first, or use another folder' })
  }
  if (owner.host === hostId() || takeOver) return
  throw new StorageError(`${dir} belongs to ${textOf(owner)}, and this is ${hostname()}`, {
    hint: 'whether that process still runs cannot be checked from here; if you know that it does not: --take-over',
  })
}

function textOf({ name, pid, host }: OwnerRecord): string {
  return `${name || 'a process'} (pid ${pid} on ${host.split('/')[0]})`
}

/**
 * Throws when the folder is a copy of another one on this machine whose owner is alive: both would be the same member. The
 * original is recognized by the nonce of the last owner or, if it was restarted since, by the identity of its member.
 */
async function checkNoCopy(here: string, number: number, last: OwnerRecord): Promise<void> {
  const { path: original, nonce } = last
  if (original === undefined || original === here) return
  let owner: OwnerRecord | undefined
  try {
    if (fs.realpathSync(original) === here) return
    const highest = highestOf(fs.readdirSync(original))
    owner = JSON.parse(fs.readFileSync(join(original, `owner.${highest}`), 'utf8')) as OwnerRecord
    const isSame = (highest === number && owner.nonce === nonce) || isSameMember(here, original)
    if (!isSame || owner.boot !== bootId() || !(await isAlive(original, owner.socket))) return
  } catch (error) {
    // The original was moved or is unusable: then it has no live owner.
    if (typeof (error as NodeJS.ErrnoException).code === 'string') return
    if (error instanceof SyntaxError) return
    throw error
  }
  throw new StorageError(`${here} is a copy of ${original}, which is in use by ${textOf(owner)}`, {
    hint: `two members must not have the same identity; use ${original}, or stop its member before you start the copy. For a separate service, restore a backup into an empty folder`,
  })
}

async function isAlive(dir: string, socket: string): Promise<boolean> {
  const sockets = new SocketFolder(dir)
  try {
    return await answers(sockets.pathOf(socket))
  } finally {
    sockets.close()
  }
}

function isSameMember(one: string, other: string): boolean {
  const files = [one, other].map((dir) => join(dir, IDENTITY_FILE))
  if (!files.every((file) => fs.existsSync(file))) return false
  const [a, b] = files.map((file) => fs.readFileSync(file))
  return a !== undefined && b !== undefined && a.equals(b)
}

/** Creates the complete file, or returns false when it exists. */
function createOwner(dir: string, number: number, record: OwnerRecord): boolean {
  const file = join(dir, `owner.${number}`)
  const draft = join(dir, `owner-${randomBytes(8).toString('hex')}.draft`)
  const text = `${JSON.stringify(record)}\n`
  try {
    fs.writeFileSync(draft, text, { flag: 'wx', mode: 0o600 })
    fs.linkSync(draft, file)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR'].includes(code ?? '')) throw error
  } finally {
    fs.rmSync(draft, { force: true })
  }
  // A file system without links: a reader may see the file before its content, and fails then.
  try {
    fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function deleteLower(dir: string, folder: SocketFolder, number: number): void {
  for (const lower of ownersOf(fs.readdirSync(dir))) {
    if (lower >= number) continue
    const file = join(dir, `owner.${lower}`)
    try {
      const { socket } = JSON.parse(fs.readFileSync(file, 'utf8')) as OwnerRecord
      fs.rmSync(folder.pathOf(socket), { force: true })
    } catch {
      // Unreadable, or deleted by another process: the file itself is removed either way.
    }
    fs.rmSync(file, { force: true })
  }
}
