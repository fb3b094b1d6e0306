import { describe, expect, test } from 'vitest'
import WebSocket from 'ws'
import { FRAME_BYTES_MAX } from '../../src/limits.js'
import { PreauthBuffer } from '../../src/stream/preauth-buffer.js'
import { rawSocket, serve, until } from '../support/harness.js'
import { useKeyFile } from '../support/keys.js'
import { openStream } from '../support/raw-stream.js'

const keys = useKeyFile()

describe('PreauthBuffer', () => {
  test('cuts the unauthenticated connections that sent the most, so that a client with a key can connect', async () => {
    const { text } = keys.create('*:read')
    const { server, url } = await serve({ keys: keys.file })
    const handshake = [
      'GET /v1/stream HTTP/1.1',
      `Host: 127.0.0.1:${server.port}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ]
    const head = Buffer.alloc(14)
    head.set([0x82, 0x80 | 127])
    head.writeBigUInt64BE(BigInt(FRAME_BYTES_MAX), 2)
    const most = Buffer.alloc(FRAME_BYTES_MAX - 64, 1)
    const attackers = await Promise.all(Array.from({ length: 24 }, () => rawSocket(server.port)))
    let cut = 0
    for (const socket of attackers) {
      socket.on('close', () => cut++)
      socket.write(`${handshake.join('\r\n')}\r\n\r\n`)
      socket.once('data', () => {
        socket.write(head)
        socket.write(most)
      })
    }
    // Together they send 96 MiB; the limit is 64 MiB.
    await until(() => cut >= 8)
    const { socket: client } = await openStream(url, text)
    expect(client.readyState).toBe(WebSocket.OPEN)
    expect(cut).toBeLessThan(24)
    client.terminate()
    for (const socket of attackers) socket.destroy()
  })

  test('does not count the bytes of authenticated or closed connections', () => {
    const cut: string[] = []
    const buffer = new PreauthBuffer(100)
    const [a, b, c] = ['a', 'b', 'c'].map((name) => buffer.open(() => cut.push(name)))
    a?.add(60)
    a?.end()
    a?.end()
    a?.add(1000)
    b?.add(60)
    c?.add(39)
    expect(cut).toEqual([])
    c?.add(2)
    expect(cut).toEqual(['b'])
    b?.add(1000)
    expect(cut).toEqual(['b'])
  })
})
