import { once } from 'node:events'
import {
  type ClientMessage,
  type Command,
  decodeServerMessages,
  encodeClientMessages,
  type Millis,
  type Result,
  type ServerMessage,
  STREAM_VERSION,
} from '@leasehold/core'
import { afterEach, describe, expect, it } from 'vitest'
import WebSocket from 'ws'
import { FRAME_BYTES_MAX, STOP_TIMEOUT_MS } from '../../src/limits.js'
import { serve, until } from '../support/harness.js'

const sockets: WebSocket[] = []

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.terminate()
})

interface Client {
  readonly socket: WebSocket
  readonly messages: ServerMessage[]
  readonly frames: () => number
  readonly closed: Promise<{ code: number; reason: string }>
  send(...messages: ClientMessage[]): void
  wait<K extends ServerMessage['kind']>(kind: K, correlation?: number): Promise<Extract<ServerMessage, { kind: K }>>
}

async function connect(url: string, greet = true): Promise<Client> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`, { perMessageDeflate: false })
  sockets.push(socket)
  const messages: ServerMessage[] = []
  let frames = 0
  socket.on('message', (data: Buffer) => {
    frames++
    messages.push(...decodeServerMessages(data))
  })
  socket.on('error', () => {})
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
  })
  await once(socket, 'open')
  const client: Client = {
    socket,
    messages,
    closed,
    frames: () => frames,
    send: (...sent) => socket.send(encodeClientMessages(sent)),
    async wait(kind, correlation) {
      const find = () =>
        messages.find(
          (one) =>
            one.kind === kind &&
            (correlation === undefined || ('correlation' in one && one.correlation === correlation)),
        )
      await until(() => find() !== undefined)
      return find() as never
    },
  }
  if (greet) {
    client.send({ kind: 'hello', version: STREAM_VERSION, apiKey: '', client: 'test', epoch: 0 })
    await client.wait('welcome')
  }
  return client
}

const openSession: Command = {
  kind: 'openSession',
  nonce: 'ab'.repeat(16),
  secret: '00'.repeat(16),
  ttlMs: 10_000 as Millis,
  client: '',
  local: false,
}

async function sessionOf(client: Client) {
  client.send({ kind: 'command', correlation: 1, command: openSession })
  const { result } = await client.wait('result', 1)
  if (result.kind !== 'opened') throw new Error(`not opened: ${JSON.stringify(result)}`)
  return result
}

function acquire(session: number, request: number, name: string, waitMs = 0): Command {
  return {
    kind: 'acquire',
    session: session as never,
    request,
    ack: { lowest: 1, also: [] },
    locks: [{ name, mode: 'exclusive' }],
    waitMs,
    lockDelayMs: 0 as Millis,
    persistent: false,
    portable: false,
    data: new Uint8Array(0),
  }
}

describe('a stream', () => {
  it('sends a welcome, and carries many operations per frame in both directions', async () => {
    const { url, server } = await serve()
    const client = await connect(url)
    expect(client.messages[0]).toMatchObject({
      kind: 'welcome',
      cluster: 'test-cluster',
      epoch: 1,
      urls: [server.url],
      leaderUrl: '',
    })
    const { session } = await sessionOf(client)
    const before = client.frames()
    client.send(
      ...Array.from(
        { length: 200 },
        (_, i): ClientMessage => ({ kind: 'command', correlation: 10 + i, command: acquire(session, 1 + i, `n${i}`) }),
      ),
    )
    await client.wait('result', 209)
    expect(client.messages.filter((one) => one.kind === 'result' && one.result.kind === 'granted')).toHaveLength(200)
    expect(client.frames() - before).toBeLessThan(10)
  })

  it('pushes grants and ends', async () => {
    const { url, post } = await serve()
    const client = await connect(url)
    const { session } = await sessionOf(client)
    const { hold } = (await post('/v1/acquire', { name: 'a' })).body
    client.send({ kind: 'command', correlation: 2, command: acquire(session, 1, 'a', 10_000) })
    expect((await client.wait('result', 2)).result).toMatchObject({ kind: 'queued' })
    await post('/v1/release', { hold })
    expect((await client.wait('push')).push).toMatchObject({ session, change: { kind: 'granted', request: 1 } })
    await post('/v1/steal', { name: 'a', reason: 'test' })
    await until(() => client.messages.some((one) => one.kind === 'push' && one.push.change?.kind === 'ended'))
  })

  it('keeps its sessions when the connection is lost, so that another one can attach with the secret', async () => {
    const { url } = await serve()
    const first = await connect(url)
    const { session, secret } = await sessionOf(first)
    first.socket.terminate()
    const second = await connect(url)
    second.send({ kind: 'command', correlation: 5, command: { kind: 'renew', session } })
    expect((await second.wait('error', 5)).refused.code).toBe('forbidden')
    second.send({ kind: 'attach', correlation: 6, session, secret: 'ff'.repeat(16) })
    expect((await second.wait('error', 6)).refused.code).toBe('forbidden')
    second.send({ kind: 'attach', correlation: 7, session, secret })
    await second.wait('attached', 7)
    second.send({ kind: 'command', correlation: 8, command: { kind: 'renew', session } })
    expect((await second.wait('result', 8)).result.kind).toBe('renewed')
  })

  it('is closed with 1001 when the server stops, after pending requests were answered', async () => {
    const { url, server } = await serve()
    const client = await connect(url)
    const { session } = await sessionOf(client)
    client.send({ kind: 'command', correlation: 3, command: acquire(session, 1, 'a') })
    await client.wait('result', 3)
    const started = performance.now()
    await server.close()
    expect(await client.closed).toMatchObject({ code: 1001 })
    expect(performance.now() - started).toBeLessThan(STOP_TIMEOUT_MS)
  })
})

describe('malformed frames', () => {
  it('get one error, and the connection is closed', async () => {
    const { url, get } = await serve()
    const garbage = [
      Buffer.from([0]),
      Buffer.from([99, 1, 2, 3]),
      Buffer.alloc(64, 0xff),
      Buffer.from([3, 0, 0, 0, 1]),
      Buffer.from('GET / HTTP/1.1'),
    ]
    for (const frame of garbage) {
      const client = await connect(url)
      client.socket.send(frame)
      expect(await client.closed).toMatchObject({ code: 1002 })
      const errors = client.messages.filter((one) => one.kind === 'error')
      expect(errors).toHaveLength(1)
      expect(errors[0]).toMatchObject({ correlation: 0, refused: { code: 'invalid' } })
    }
    expect((await get('/healthz')).status).toBe(200)
  })

  it('of text, or above the size limit, close the connection', async () => {
    const { url, get } = await serve()
    const text = await connect(url)
    text.socket.send('hello')
    expect(await text.closed).toMatchObject({ code: 1003 })
    const large = await connect(url)
    large.socket.send(Buffer.alloc(FRAME_BYTES_MAX + 1))
    expect(await large.closed).toMatchObject({ code: 1009 })
    expect((await get('/healthz')).status).toBe(200)
  })

  it('before the hello, or with another version, are rejected with a reason', async () => {
    const { url } = await serve()
    const early = await connect(url, false)
    early.send({ kind: 'ping', correlation: 1 })
    expect((await early.closed).reason).toMatch(/hello/)
    const other = await connect(url, false)
    other.send({ kind: 'hello', version: 99, apiKey: '', client: '', epoch: 0 })
    expect((await other.closed).reason).toMatch(/version/)
    expect((await other.wait('error')).refused.code).toBe('invalid')
  })

  it('mutated at random never stop the server', async () => {
    const { url, get, post } = await serve()
    let seed = 7
    const random = (limit: number) => {
      seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff
      return seed % limit
    }
    const good = encodeClientMessages([
      { kind: 'hello', version: STREAM_VERSION, apiKey: 'k', client: 'c', epoch: 1 },
      { kind: 'command', correlation: 1, command: openSession },
      { kind: 'command', correlation: 2, command: acquire(1, 1, 'a') },
      { kind: 'query', correlation: 3, query: { prefix: 'a' }, stale: true },
      { kind: 'watch', correlation: 4, prefix: 'a' },
      { kind: 'command', correlation: 5, command: { kind: 'put', key: 'k', value: new Uint8Array(9), ifVersion: 3n } },
      { kind: 'attach', correlation: 6, session: 1 as never, secret: 'ab'.repeat(16) },
    ])
    for (let round = 0; round < 80; round++) {
      const frame = Buffer.from(good)
      for (let i = 0; i <= random(4); i++) frame[random(frame.length)] = random(256)
      const cut = random(3) === 0 ? random(frame.length) : frame.length
      const client = await connect(url, random(2) === 0)
      client.socket.send(frame.subarray(0, cut))
      client.socket.send(good)
      await Promise.race([client.closed, new Promise((resolve) => setTimeout(resolve, 3))])
      client.socket.terminate()
    }
    expect((await get('/healthz')).status).toBe(200)
    expect((await post('/v1/acquire', { name: 'still-works' })).status).toBe(200)
  })
})

describe('slow clients', () => {
  it('are disconnected with a reason when events pile up', async () => {
    const { url, post, member } = await serve()
    const client = await connect(url)
    client.send({ kind: 'watch', correlation: 10, prefix: '' })
    client.send({ kind: 'ping', correlation: 11 })
    await client.wait('pong', 11)
    const raw = rawOf(client)
    raw.pause()
    const opened = await new Promise<Result>((done) => member.submit(openSession, done))
    if (opened.kind !== 'opened') throw new Error(opened.kind)
    const ack = { lowest: 1, also: [] }
    for (let request = 1; request <= 500; request++) {
      const locks = Array.from({ length: 64 }, (_, n) => ({
        name: `${request}/${n}/${'n'.repeat(480)}`,
        mode: 'shared' as const,
      }))
      const rest = { waitMs: 0, lockDelayMs: 0 as Millis, persistent: false, portable: false, data: new Uint8Array(0) }
      member.submit({ kind: 'acquire', session: opened.session, request, ack, locks, ...rest }, () => {})
      if (request % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    raw.resume()
    expect((await client.closed).code).not.toBe(1000)
    const shown = client.messages.flatMap((one) => (one.kind === 'events' ? one.items : []))
    expect(shown.length).toBeLessThan(500)
    expect((await post('/v1/acquire', { name: 'a' })).status).toBe(200)
    expect(member.status.role).toBe('leader')
  })

  it('delay their own reads: thousands of reads in one frame use bounded memory, and all are answered', async () => {
    const { url, call, get, post } = await serve()
    const client = await connect(url)
    await call('PUT', '/v1/registers?key=big', new Uint8Array(65_000))
    const raw = rawOf(client)
    raw.pause()
    const before = process.memoryUsage().arrayBuffers
    const gets = Array.from(
      { length: 2_000 },
      (_, i): ClientMessage => ({ kind: 'get', correlation: i + 1, key: 'big', stale: i % 2 === 0 }),
    )
    client.send(...gets)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect((await get('/healthz')).status).toBe(200)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024)
    raw.resume()
    const answers = () => client.messages.filter((one) => one.kind === 'getAnswer').length
    await until(() => answers() === 2_000)
    expect((await post('/v1/acquire', { name: 'a' })).status).toBe(200)
  })

  it('get an error when they send more requests than a stream queues', async () => {
    const { url, call } = await serve()
    const client = await connect(url)
    await call('PUT', '/v1/registers?key=big', new Uint8Array(65_000))
    rawOf(client).pause()
    const gets = Array.from(
      { length: 20_000 },
      (_, i): ClientMessage => ({ kind: 'get', correlation: i + 1, key: 'big', stale: true }),
    )
    client.send(...gets)
    await new Promise((resolve) => setTimeout(resolve, 200))
    const other = await connect(url)
    other.send({ kind: 'ping', correlation: 5 })
    await other.wait('pong', 5)
    rawOf(client).resume()
    await until(() => client.messages.some((one) => one.kind === 'error' && one.refused.code === 'limit'))
  })
})

function rawOf(client: Client): { pause(): void; resume(): void } {
  return (client.socket as unknown as { _socket: { pause(): void; resume(): void } })._socket
}
