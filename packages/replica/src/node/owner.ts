import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { StorageError } from '@leasehold/core'
import { folderFailed } from '../storage-errors.js'

/** Who owns a data folder, as its `owner.<n>` file says. */
interface OwnerRecord {
  readonly name: string
  readonly host: string
  /** Changes with every start of the machine; '' where it cannot be known. */
  readonly boot: string
  /** Where the owner listens while it lives: a name in the folder, or a path. */
  readonly socket: string
  /** For people; decides nothing. */
  readonly pid: number
}

export interface ClaimOptions {
  /** Tells people who owns the folder. */
  readonly name?: string
  /** Takes the folder from an owner on another machine, of which nobody here can know that it is dead. */
  readonly takeOver?: boolean
  /** Runs when somebody else has taken the folder over: the member must stop at once. */
  readonly onLost?: () => void
}

/** The right to write into a data folder. */
export interface FolderOwner {
  /** It grows with every owner. */
  readonly number: number
  /** Gives the folder back. The next owner needs no permission. */
  release(): Promise<void>
}

const OWNER = /^owner\.(\d{1,15})$/
/** A socket's path has at most 108 bytes on Linux, 104 on macOS. */
const SOCKET_PATH_MAX = 100
const CONNECT_TIMEOUT_MS = 2000
const WATCH_EVERY_MS = 1000
const CLAIM_ATTEMPTS = 10

/**
 * Makes this process the only owner of a data folder.
 *
 * The files `owner.<n>` are only ever added, and the highest decides. To take over, one makes sure that the highest is
 * dead, creates the next, and lists again: whoever is not the highest then gives up, and only the highest deletes lower
 * ones. (Deleting before creating would let two in.) An owner is dead when the machine is the same and it was not
 * restarted, and nobody listens on its socket; or when the machine is the same and was restarted. Process numbers and
 * ages decide nothing.
 *
 * @throws StorageError when the folder has a living owner, or one on another machine, or cannot be written
 */
export async function claimFolder(dir: string, options: ClaimOptions = {}): Promise<FolderOwner> {
  let folder: SocketFolder | undefined
  let server: net.Server | undefined
  try {
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
    folder = new SocketFolder(dir)
    const socket = folder.newName()
    server = await listen(folder.pathOf(socket))
    const record: OwnerRecord = { name: options.name ?? '', host: hostId(), boot: bootId(), socket, pid: process.pid }
    const number = await claimNumber(dir, folder, record, options.takeOver ?? false)
    deleteLower(dir, folder, number)
    return new HeldFolder(dir, folder, server, number, options.onLost)
  } catch (error) {
    server?.close()
    folder?.close()
    throw folderFailed(dir, error)
  }
}

async function claimNumber(dir: string, folder: SocketFolder, record: OwnerRecord, takeOver: boolean): Promise<number> {
  for (let attempt = 0; attempt < CLAIM_ATTEMPTS; attempt++) {
    const highest = highestOwner(dir)
    if (highest > 0 && !(await mayTakeFrom(dir, folder, highest, takeOver))) continue
    if (!createOwner(dir, highest + 1, record)) continue
    if (highestOwner(dir) === highest + 1) return highest + 1
    throw new StorageError(`${dir} was taken by another process a moment ago`, { hint: 'only one of them can have it' })
  }
  throw new StorageError(`${dir}: too many processes want this folder at once`, { hint: 'try again' })
}

/** Throws when the owner lives, or may. Returns false when its file has gone: look again. */
async function mayTakeFrom(dir: string, folder: SocketFolder, number: number, takeOver: boolean): Promise<boolean> {
  const file = join(dir, `owner.${number}`)
  let owner: OwnerRecord
  try {
    owner = JSON.parse(fs.readFileSync(file, 'utf8')) as OwnerRecord
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    if (takeOver) return true
    throw new StorageError(`${file} cannot be read: ${(error as Error).message}`, {
      cause: error,
      hint: 'when you know that no other process uses this folder: --take-over',
    })
  }
  const who = `${owner.name || 'a process'} (pid ${owner.pid} on ${owner.host.split('/')[0]})`
  if (owner.boot === bootId()) {
    if (!(await answers(folder.pathOf(owner.socket)))) return true
    throw new StorageError(`${dir} is in use by ${who}`, { hint: 'stop it first, or use another folder' })
  }
  if (owner.host === hostId() || takeOver) return true
  throw new StorageError(`${dir} belongs to ${who}, and this is ${hostname()}`, {
    hint: 'nobody here can know whether that process still runs; when you know that it does not: --take-over',
  })
}

/** Creates the file whole, or not at all because it is there. */
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
  // A file system without links: a reader may see the file before its content, and then refuses.
  try {
    fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function owners(dir: string): number[] {
  return fs.readdirSync(dir).flatMap((name) => {
    const match = OWNER.exec(name)
    return match ? [Number(match[1])] : []
  })
}

function highestOwner(dir: string): number {
  return Math.max(0, ...owners(dir))
}

function deleteLower(dir: string, folder: SocketFolder, number: number): void {
  for (const lower of owners(dir)) {
    if (lower >= number) continue
    const file = join(dir, `owner.${lower}`)
    try {
      const { socket } = JSON.parse(fs.readFileSync(file, 'utf8')) as OwnerRecord
      fs.rmSync(folder.pathOf(socket), { force: true })
    } catch {
      // Unreadable, or another process was faster: the file itself goes either way.
    }
    fs.rmSync(file, { force: true })
  }
}

class HeldFolder implements FolderOwner {
  private readonly watch: NodeJS.Timeout
  private released = false

  constructor(
    private readonly dir: string,
    private readonly folder: SocketFolder,
    private readonly server: net.Server,
    readonly number: number,
    onLost: (() => void) | undefined,
  ) {
    this.watch = setInterval(() => {
      if (this.isHighest()) return
      clearInterval(this.watch)
      onLost?.()
    }, WATCH_EVERY_MS)
    this.watch.unref()
  }

  async release(): Promise<void> {
    if (this.released) return
    this.released = true
    clearInterval(this.watch)
    await new Promise<void>((resolve) => this.server.close(() => resolve()))
    this.folder.close()
  }

  /** A folder that cannot be read right now says nothing. */
  private isHighest(): boolean {
    try {
      return highestOwner(this.dir) <= this.number
    } catch {
      return true
    }
  }
}

/** Where the sockets of a folder's owners are: in the folder, so that every container that shares it finds them. */
class SocketFolder {
  private readonly fd: number | undefined
  private readonly base: string | undefined

  constructor(dir: string) {
    const long = Buffer.byteLength(join(dir, 'owner-0123456789abcdef.sock')) > SOCKET_PATH_MAX
    if (process.platform === 'win32' || (long && process.platform !== 'linux')) return
    // A path that is too long is shortened by the open folder.
    if (long) this.fd = fs.openSync(dir, 'r')
    this.base = this.fd === undefined ? dir : `/proc/self/fd/${this.fd}`
  }

  newName(): string {
    const name = `owner-${randomBytes(8).toString('hex')}.sock`
    if (process.platform === 'win32') return `\\\\.\\pipe\\leasehold-${name}`
    return this.base === undefined ? join(tmpdir(), `leasehold-${name}`) : name
  }

  pathOf(socket: string): string {
    return this.base !== undefined && !socket.includes('/') ? `${this.base}/${socket}` : socket
  }

  close(): void {
    if (this.fd !== undefined) fs.closeSync(this.fd)
  }
}

function listen(path: string): Promise<net.Server> {
  return new Promise((resolve, reject) => {
    const server = net.createServer((connection) => connection.destroy())
    server.once('error', reject)
    server.listen(path, () => {
      server.unref()
      resolve(server)
    })
  })
}

/** Whether somebody listens. Only a clear refusal means that nobody does. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect(path)
    const end = (alive: boolean): void => {
      clearTimeout(timer)
      connection.destroy()
      resolve(alive)
    }
    const timer = setTimeout(() => end(true), CONNECT_TIMEOUT_MS)
    connection.once('connect', () => end(true))
    connection.once('error', (error: NodeJS.ErrnoException) =>
      end(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    )
  })
}

function hostId(): string {
  let machine = ''
  try {
    machine = fs.readFileSync('/etc/machine-id', 'utf8').trim()
  } catch {
    // Not every system has one; the name must do.
  }
  return `${hostname()}/${machine}`
}

function bootId(): string {
  try {
    if (process.platform === 'linux') return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    if (process.platform === 'darwin')
      return execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim()
  } catch {
    // Unknown: equal on the same machine, so that the socket decides.
  }
  return `unknown/${hostId()}`
}
