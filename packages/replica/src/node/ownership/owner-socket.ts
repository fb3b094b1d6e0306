import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Most bytes of a socket path: the limit is 108 on Linux, 104 on macOS. */
const SOCKET_PATH_MAX = 100
const CONNECT_TIMEOUT_MS = 2000

/** The location of the owners' sockets: in the data folder, so that every container that shares it finds them. */
export class SocketFolder {
  readonly #fd: number | undefined
  readonly #base: string | undefined

  constructor(dir: string) {
    const long = Buffer.byteLength(join(dir, 'owner-0123456789abcdef.sock')) > SOCKET_PATH_MAX
    if (process.platform === 'win32' || (long && process.platform !== 'linux')) return
    // A long path is shortened through the descriptor of the open folder.
    if (long) this.#fd = fs.openSync(dir, 'r')
    this.#base = this.#fd === undefined ? dir : `/proc/self/fd/${this.#fd}`
  }

  newName(): string {
    const name = `owner-${randomBytes(8).toString('hex')}.sock`
    if (process.platform === 'win32') return `\\\\.\\pipe\\leasehold-${name}`
    return this.#base === undefined ? join(tmpdir(), `leasehold-${name}`) : name
  }

  pathOf(socket: string): string {
    return this.#base !== undefined && !socket.includes('/') ? `${this.#base}/${socket}` : socket
  }

  close(): void {
    if (this.#fd !== undefined) fs.closeSync(this.#fd)
  }
}

export function listen(path: string): Promise<net.Server> {
  return new Promise((resolve, reject) => {
    const server = net.createServer((connection) => connection.destroy())
    server.once('error', reject)
    server.listen(path, () => {
      server.unref()
      resolve(server)
    })
  })
}

/** Whether a process listens on the socket. Only a definite refusal counts as no. */
export function answers(path: string): Promise<boolean> {
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
