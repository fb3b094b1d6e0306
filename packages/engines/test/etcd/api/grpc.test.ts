import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { GrpcConnection } from '../../../src/etcd/api/grpc.js'

it('a connection that is closed while an answer is read breaks only after the read', async () => {
  const server = createServer()
  server.on('session', (session) => session.on('error', () => {}))
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200 })
    // A message of one byte.
    stream.write(Buffer.from([0, 0, 0, 0, 1, 7]))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  let isReading = false
  const ended = await new Promise<string>((resolve) => {
    const connection = new GrpcConnection(`http://127.0.0.1:${port}`, {}, () => {})
    const stream = connection.stream(
      '/a',
      {},
      {
        message: () => {
          isReading = true
          setImmediate(() => (isReading = false))
          connection.close(new Error('left'))
          expect([connection.usable, connection.connected]).toEqual([false, true])
        },
        ended: ({ message, sent }) => resolve(`${isReading ? 'reading' : 'later'}: ${message}, sent ${sent}`),
      },
    )
    stream.send(Buffer.alloc(1))
  })
  expect(ended).toBe('later: left, sent true')
  await new Promise((resolve) => server.close(resolve))
})
