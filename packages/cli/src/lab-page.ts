import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StorageError, UnavailableError } from '@leasehold/core'
import type { Listen } from './serve/options.js'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/** The page loads nothing from other origins. */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; img-src data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

/**
 * Returns the folder of the page. In a clone of the repository, it is built if it is missing or older than its sources; an
 * installed package contains it.
 * @throws StorageError if it is missing and cannot be built
 */
export async function preparePage(log: (line: string) => void): Promise<string> {
  const lab = import.meta.resolve('@leasehold/lab')
  const folder = fileURLToPath(new URL('page/', lab))
  const builder = new URL('../page/build.mjs', lab)
  if (existsSync(builder)) {
    try {
      const { ensurePage } = (await import(builder.href)) as {
        ensurePage: (options: { log: (line: string) => void }) => Promise<void>
      }
      await ensurePage({ log })
    } catch (cause) {
      throw new StorageError('the page of the lab cannot be built', {
        cause,
        hint: 'run `npm ci` and `npm run build` in the repository, and read their output',
      })
    }
  }
  if (existsSync(join(folder, 'index.html'))) return folder
  throw new StorageError(`the page of the lab is missing in ${folder}`, { hint: 'reinstall the package' })
}

/** Serves the files of a folder over HTTP. */
export async function servePage(
  folder: string,
  { host, port }: Listen,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    respond(folder, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((listening, failed) => {
    server.once('error', (cause) => {
      failed(new UnavailableError(`cannot listen on ${host}:${port}`, { cause, hint: 'choose another --listen' }))
    })
    server.listen(port, host, listening)
  })
  const { port: taken } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}/`,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  }
}

async function respond(folder: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return end(response, 405)
  const { pathname } = new URL(request.url ?? '/', 'http://page')
  const match = /^\/(?:(assets\/)?([A-Za-z0-9_-]+\.(?:js|css|html)))?$/.exec(pathname)
  if (match === null) return end(response, 404)
  const name = match[2] ?? 'index.html'
  const file = join(folder, match[1] ?? '', basename(name))
  let content: Buffer
  try {
    content = await readFile(file)
  } catch {
    return end(response, 404)
  }
  response.writeHead(200, { ...HEADERS, 'content-type': TYPES[extname(name)] ?? 'application/octet-stream' })
  response.end(request.method === 'HEAD' ? undefined : content)
}

function end(response: ServerResponse, status: number): void {
  response.writeHead(status, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' })
  response.end(`${status}\n`)
}
