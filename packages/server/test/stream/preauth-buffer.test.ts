import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeClientMessages, STREAM_VERSION } from '@leasehold/core'
import { createKey } from '@leasehold/server'
import { afterEach, beforeEach, expect, test } from 'vitest'
import WebSocket from 'ws'
import { FRAME_BYTES_MAX } from '../../src/limits.js'
import { PreauthBuffer } from '../../src/stream/preauth-buffer.js'
import { rawSocket, serve, until } from '../support/harness.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-early-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('strangers with unfinished frames are cut, the greatest first, and who has a key comes in', async () => {
  const keys = join(folder, 'keys.json')
  const { text } = createKey(keys, { name: 'test', rules: ['*:read'] }, new Date())
  const { server, url } = await serve({ keys })
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
  const strangers = await Promise.all(Array.from({ length: 24 }, () => rawSocket(server.port)))
  let cut = 0
  for (const socket of strangers) {
    socket.on('close', () => cut++)
    socket.write(`${handshake.join('\r\n')}\r\n\r\n`)
    socket.once('data', () => {
      socket.write(head)
      socket.write(most)
    })
  }
  // Together they would hold 96 MiB, and may hold 64.
  await until(() => cut >= 8, 8_000)
  const client = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`)
  await new Promise((resolve) => client.once('open', resolve))
  const welcome = new Promise((resolve) => client.once('message', resolve))
  client.send(encodeClientMessages([{ kind: 'hello', version: STREAM_VERSION, apiKey: text, client: '', epoch: 0 }]))
  await welcome
  expect(client.readyState).toBe(WebSocket.OPEN)
  expect(cut).toBeLessThan(24)
  client.terminate()
  for (const socket of strangers) socket.destroy()
})

test('what is known, or gone, does not count any more', () => {
  const cut: string[] = []
  const early = new PreauthBuffer(100)
  const [a, b, c] = ['a', 'b', 'c'].map((name) => early.open(() => cut.push(name)))
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
