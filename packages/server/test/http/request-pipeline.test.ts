import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { RequestPipelines } from '../../src/http/request-pipeline.js'
import { until } from '../support/until.js'

const IN_WORK = 16
const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A server that answers nothing by itself, and a connection to it. */
async function start() {
  const started: ServerResponse[] = []
  const paths: (string | undefined)[] = []
  const pipelines = new RequestPipelines((incoming, outgoing) => {
    paths.push(incoming.url)
    started.push(outgoing)
  })
  let socket: Socket | undefined
  const server = createServer((incoming, outgoing) => {
    socket = incoming.socket
    pipelines.add(incoming, outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
  let received = ''
  client.setEncoding('utf8').on('data', (text: string) => (received += text))
  closing.push(() => client.destroy())
  closing.push(() => server.close())
  const send = (from: number, count: number): void => {
    const requests = Array.from({ length: count }, (_, i) => `GET /${from + i} HTTP/1.1\r\nhost: a\r\n\r\n`)
    client.write(requests.join(''))
  }
  return { started, paths, client, send, received: () => received, pending: () => pipelines.size(socket as Socket) }
}

describe('RequestPipelines', () => {
  test('starts 16 requests of a connection, and the next when one is answered', async () => {
    const { started, send, pending } = await start()
    send(0, 40)
    await until(() => started.length > 0 && pending() === 40, 'all arrived')
    expect(started.length).toBe(IN_WORK)
    started[0]?.end('a')
    await until(() => started.length === IN_WORK + 1, 'the next one')
    expect(pending()).toBe(39)
  })

  test('answers all requests in their order, and those that arrive while the socket was paused', async () => {
    const { started, paths, send, received } = await start()
    send(0, 100)
    await until(() => started.length === IN_WORK, 'the first ones')
    send(100, 100)
    let answered = 0
    await until(() => {
      for (; answered < started.length; answered++) started[answered]?.end(`<${paths[answered]}>`)
      return received().includes('</199>')
    }, 'the last answer')
    const numbers = [...received().matchAll(/<\/(\d+)>/g)].map((match) => Number(match[1]))
    expect(numbers).toEqual(Array.from({ length: 200 }, (_, i) => i))
  })

  test('closes a connection with too many queued requests', async () => {
    const { started, client, send } = await start()
    send(0, 1_000)
    await once(client, 'close')
    expect(started.length).toBe(IN_WORK)
  })

  test('closes every response in work when the connection closes', async () => {
    const { started, client, send } = await start()
    send(0, 3)
    await until(() => started.length === 3, 'all arrived')
    let closed = 0
    for (const outgoing of started) outgoing.once('close', () => closed++)
    client.destroy()
    await until(() => closed === 3, 'all closed')
  })
})
