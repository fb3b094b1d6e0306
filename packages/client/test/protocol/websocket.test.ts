import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decodeClientMessages, encodeServerMessages, InvalidError } from '@leasehold/core'
import { lockViews, StreamHub } from '@leasehold/replica'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { createLocksOn, type Locks, ProtocolEngine, streamUrl, webSocketConnector } from '../../src/index.js'
import { DirectMember } from '../support/member.js'
import { TestPlatform } from '../support/platform.js'

const open: { locks: Locks[]; servers: (Server | WebSocketServer)[] } = { locks: [], servers: [] }

afterEach(async () => {
  for (const locks of open.locks.splice(0)) await locks.close()
  for (const server of open.servers.splice(0)) await new Promise((resolve) => server.close(resolve))
})

/** The stream over real sockets; what `frame` returns is sent instead of the real answers. */
async function listen(options: { garbage?: boolean } = {}) {
  const platform = new TestPlatform()
  const member = new DirectMember(platform)
  const hub = new StreamHub({ member, views: lockViews })
  const http = createServer()
  const sockets = new WebSocketServer({ server: http, path: '/v1/stream' })
  open.servers.push(sockets, http)
  sockets.on('connection', (socket) => {
    const stream = hub.open({
      emit: (messages) => socket.send(options.garbage ? new Uint8Array([255, 1, 2]) : encodeServerMessages(messages)),
      end: () => socket.close(),
    })
    socket.on('message', (data: Buffer) => stream.receive(decodeClientMessages(data)))
    socket.on('close', () => stream.close())
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return { member, sockets, url: `http://127.0.0.1:${(http.address() as AddressInfo).port}` }
}

function client(url: string, options = {}): Locks {
  const connector = webSocketConnector((address) => new WebSocket(address))
  const locks = createLocksOn(new ProtocolEngine({ urls: [url], connector }), options)
  open.locks.push(locks)
  return locks
}

describe('a stream over a WebSocket', () => {
  it('carries every operation', async () => {
    const { url } = await listen()
    const [one, two] = [client(url), client(url)]
    const hold = await one.acquire('a')
    expect(await two.tryAcquire('a')).toBeNull()
    const waiting = two.acquire('a')
    await hold.release()
    expect((await waiting).token).toBeGreaterThan(hold.token)
    await one.register('r').put({ x: 'y'.repeat(10_000) })
    expect((await two.register('r').get())?.value).toEqual({ x: 'y'.repeat(10_000) })
  })

  it('reconnects after the server has cut it', async () => {
    const { url, sockets } = await listen()
    const locks = client(url)
    const hold = await locks.acquire('a')
    for (const socket of sockets.clients) socket.terminate()
    expect(await hold.release()).toEqual({ released: true })
  })

  it('many requests of one turn are sent in one frame', async () => {
    const { url, sockets, member } = await listen()
    let frames = 0
    sockets.on('connection', (socket) => socket.on('message', () => frames++))
    const locks = client(url)
    await locks.acquire('warm-up')
    frames = 0
    await Promise.all(Array.from({ length: 200 }, (_, i) => locks.acquire(`n${i}`)))
    expect(member.state.machine.holds.size).toBe(201)
    expect(frames).toBeLessThan(10)
  })

  it('a large burst is sent in several frames, and no request twice', async () => {
    const { url, sockets } = await listen()
    let acquires = 0
    let largest = 0
    sockets.on('connection', (socket) =>
      socket.on('message', (data: Buffer) => {
        largest = Math.max(largest, data.length)
        for (const message of decodeClientMessages(data)) {
          if (message.kind === 'command' && message.command.kind === 'acquire') acquires++
        }
      }),
    )
    const locks = client(url)
    const data = new Uint8Array(4_000)
    await Promise.all(Array.from({ length: 150 }, (_, i) => locks.acquire(`n${i}`, { data })))
    expect(acquires).toBe(150)
    expect(largest).toBeLessThan(300_000)
  })

  it('without an answer is unreachable', async () => {
    const { url } = await listen()
    for (const server of open.servers.splice(0)) await new Promise((resolve) => server.close(resolve))
    await expect(client(url, { connectTimeout: '500ms' }).acquire('a')).rejects.toMatchObject({ code: 'unreachable' })
  })

  it('that sends an invalid frame is dropped', async () => {
    const { url } = await listen({ garbage: true })
    const error = await client(url, { connectTimeout: '500ms' })
      .acquire('a')
      .catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'unreachable', message: expect.stringContaining('invalid frame') })
  })

  it('one value that cannot be encoded fails alone', async () => {
    const { url } = await listen()
    const locks = client(url)
    const hold = await locks.acquire('a')
    await expect(locks.steal('a', { reason: '\ud800' })).rejects.toBeInstanceOf(InvalidError)
    expect(hold.state).toBe('held')
    expect(locks.status.state).toBe('connected')
  })
})

describe('the address of a stream', () => {
  it('is made from the URL of a service', () => {
    expect(streamUrl('http://h:4100')).toBe('ws://h:4100/v1/stream')
    expect(streamUrl('https://h/base/')).toBe('wss://h/base/v1/stream')
    for (const url of ['h:4100', 'ftp://h', '']) expect(() => streamUrl(url)).toThrow(InvalidError)
  })
})
