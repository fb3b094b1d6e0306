import { once } from 'node:events'
import {
  type ClientMessage,
  decodeServerMessages,
  encodeClientMessages,
  type ServerMessage,
  STREAM_VERSION,
} from '@leasehold/core'
import WebSocket from 'ws'
import { until } from './until.js'

/** Opens a stream with this key, sends `messages` after the hello, and waits for the first response. */
export async function openStream(
  url: string,
  apiKey: string,
  ...messages: ClientMessage[]
): Promise<{ readonly socket: WebSocket; readonly received: ServerMessage[] }> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`)
  const received: ServerMessage[] = []
  socket.on('message', (data: Buffer) => received.push(...decodeServerMessages(data)))
  await once(socket, 'open')
  const hello = { kind: 'hello', version: STREAM_VERSION, apiKey, client: '', epoch: 0 } as const
  socket.send(encodeClientMessages([hello, ...messages]))
  await until(() => received.length > 0)
  return { socket, received }
}
