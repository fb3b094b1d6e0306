import { UnavailableError } from '@leasehold/core'
import { parseAddress } from './address.js'
import type { Dialer } from './dialer.js'
import { ANSWER_FRAMES, FRAME_REQUEST, frameHead, readFrames } from './framing.js'

/** Sends one request to the member at `address`, and resolves with its answer. @throws UnavailableError, InvalidError */
export async function requestPeer(
  dialer: Dialer,
  address: string,
  request: Uint8Array,
  timeoutMs: number,
): Promise<Uint8Array> {
  const { host, port } = parseAddress(address)
  return await new Promise<Uint8Array>((resolve, reject) => {
    const socket = dialer.dial(host, port)
    const fail = (cause?: unknown): void => {
      socket.destroy()
      const hint = 'is it running, and is this its --peer-listen address? A new member must run before it is added'
      reject(new UnavailableError(`no answer from the member at ${address}`, { cause, hint }))
    }
    const timer = setTimeout(() => fail(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
    socket.once('error', fail)
    socket.once('close', () => {
      clearTimeout(timer)
      fail()
    })
    socket.once(dialer.ready, () => {
      socket.write(frameHead(FRAME_REQUEST, request.length))
      socket.write(request)
    })
    readFrames(
      socket,
      () => ANSWER_FRAMES,
      (_kind, content) => {
        clearTimeout(timer)
        resolve(content)
        socket.destroy()
      },
    )
  })
}
