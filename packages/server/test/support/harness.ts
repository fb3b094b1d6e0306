import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createServer, type LeaseholdServer, type ServerOptions } from '@leasehold/server'
import { afterEach } from 'vitest'
import { problemResponse } from '../../src/http/response-schemas.js'
import { ROUTES } from '../../src/http/app.js'
import { LocalMember } from './local-member.js'

export { until } from './until.js'

export interface Harness {
  readonly member: LocalMember
  readonly server: LeaseholdServer
  readonly url: string
  readonly call: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>
  readonly post: (path: string, body: unknown) => Promise<Answer>
  readonly get: (path: string) => Promise<Answer>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // Tests check the fields of the JSON themselves.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

const open: Harness[] = []

afterEach(async () => {
  for (const { server, member } of open.splice(0)) {
    member.thaw()
    await server.close()
    await new Promise<void>((resolve) => member.stop(resolve))
  }
})

/** A server on a free port, over a member in memory. Closed after the test. */
export async function serve(options: Partial<ServerOptions> & { member?: LocalMember } = {}): Promise<Harness> {
  const member = options.member ?? new LocalMember()
  const server = await createServer({ listen: { port: 0 }, ...options, member })
  const url = `http://127.0.0.1:${server.port}`
  const harness: Harness = {
    member,
    server,
    url,
    call: (method, path, body, headers) => call(url, method, path, body, headers),
    post: (path, body) => call(url, 'POST', path, body),
    get: (path) => call(url, 'GET', path),
  }
  open.push(harness)
  return harness
}

export async function call(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const raw = typeof body === 'string' || body instanceof Uint8Array
  const response = await fetch(url + path, {
    method,
    redirect: 'manual',
    headers: { ...(body !== undefined && !raw ? { 'content-type': 'application/json' } : {}), ...headers },
    ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const isJson = (response.headers.get('content-type') ?? '').includes('json')
  const answer = isJson ? (JSON.parse(bytes.toString()) as unknown) : bytes.toString()
  if (isJson && method !== 'HEAD' && path.startsWith('/v1/')) checkResponse(method, path, response.status, answer)
  return { status: response.status, headers: response.headers, body: answer }
}

/** Validates a response against the schema of its route. */
function checkResponse(method: string, path: string, status: number, answer: unknown): void {
  const { pathname } = new URL(path, 'http://service')
  const schema =
    status === 200
      ? ROUTES.find((route) => route.method === method && route.path === pathname)?.response
      : problemResponse
  const result = schema?.safeParse(answer)
  if (result?.success === false) {
    throw new Error(
      `${method} ${pathname} returned a response that its schema does not allow: ${result.error.message}\n${JSON.stringify(answer)}`,
    )
  }
}

/** A raw connection, for bytes that no HTTP client sends. */
export async function rawSocket(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Reads until the peer closes the connection, at most 30 s. */
export async function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.setTimeout(30_000, () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  if (!socket.destroyed) await once(socket, 'close')
  return text
}
