import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import {
  decodeSender,
  encodeSender,
  FRAME_ANSWER,
  FRAME_REQUEST,
  FRAME_REPLICA,
  FRAME_SENDER,
  frameHead,
} from '../../src/peers/framing.js'
import { FIRST_FRAME_TIMEOUT_MS } from '../../src/limits.js'
import { frameOf, openPeer } from '../support/peers.js'
import { until } from '../support/until.js'

/** Far below the shortest election timeout. */
const SOON_MS = 400
const ROUNDS = 4

describe('TcpTransport', () => {
  test('answers an unknown member once it has sent a frame', async () => {
    const [old, joining] = [await openPeer(1), await openPeer(2)]
    // The new member knows the old one, but the old one does not know the new one.
    joining.peers.setPeers(new Map([[old.node, old.address]]))
    old.send(joining.node, 'control', 'too early')
    joining.send(old.node, 'bulk', 'a chunk')
    await until(() => old.received.length === 1, 'the chunk')
    old.send(joining.node, 'control', 'its answer')
    await until(() => joining.received.length === 1, 'the answer')
    expect(joining.received).toEqual(['its answer'])
  })

  test('prefers the configured address of a member to the announced one', async () => {
    const [one, liar, real] = [await openPeer(1), await openPeer(2), await openPeer(2)]
    one.peers.setPeers(new Map([[2, real.address]]))
    liar.peers.setPeers(new Map([[1, one.address]]))
    liar.send(1, 'control', 'I am 2')
    await until(() => one.received.length === 1, 'the liar')
    one.send(2, 'control', 'for 2')
    await until(() => real.received.length === 1, 'the real one')
    expect(liar.received).toEqual([])
  })

  test('keeps connections only to the newest unknown senders', async () => {
    const old = await openPeer(1)
    const senders = await Promise.all(Array.from({ length: 20 }, (_, i) => openPeer(100 + i)))
    for (const [i, sender] of senders.entries()) {
      sender.peers.setPeers(new Map([[1, old.address]]))
      sender.send(1, 'control', String(i))
      await until(() => old.received.length === i + 1, `sender ${i}`)
    }
    for (const { node } of senders) old.send(node, 'control', 'hello')
    await until(() => senders.filter(({ received }) => received.length === 1).length === 16, '16 of 20')
    expect(senders.slice(0, 4).every(({ received }) => received.length === 0)).toBe(true)
  })

  test('decodes only a sender frame of a node number and an address', () => {
    const sender = { node: 2 ** 52 + 1, address: '[::1]:5101' }
    expect(decodeSender(encodeSender(sender))).toEqual(sender)
    expect(decodeSender(new Uint8Array(8))).toBeUndefined()
    expect(decodeSender(encodeSender({ node: 0, address: 'x:1' }))).toBeUndefined()
    expect(decodeSender(new Uint8Array(20).fill(255))).toBeUndefined()
  })
})

describe('incoming connections', () => {
  const connected = async (port: number) => {
    const socket = connect({ host: '127.0.0.1', port })
    const closed = once(socket, 'close')
    socket.on('error', () => {})
    await once(socket, 'connect')
    return { socket, closed }
  }

  test('are closed after a frame that is too long for its kind, or unexpected', async () => {
    const { peers, received } = await openPeer(1)
    const frames = [
      [FRAME_REQUEST, 64 * 1024 + 1],
      [FRAME_ANSWER, 0],
      [FRAME_ANSWER, 1000 * 1024 * 1024],
      [FRAME_REPLICA, 64 * 1024 * 1024],
      [FRAME_SENDER, 513],
      [4, 0],
      [255, 2 ** 32 - 1],
    ] as const
    for (const [kind, length] of frames) {
      const { socket, closed } = await connected(peers.port)
      socket.write(frameHead(kind, length))
      await closed
    }
    expect(received).toEqual([])
  })

  test('are closed after a frame that is too long, also when they have introduced themselves', async () => {
    const { peers } = await openPeer(1)
    const { socket, closed } = await connected(peers.port)
    const sender = encodeSender({ node: 2, address: '127.0.0.1:1' })
    socket.write(Buffer.concat([frameHead(FRAME_SENDER, sender.length), sender]))
    socket.write(frameHead(FRAME_REPLICA, 64 * 1024 * 1024 + 1))
    await closed
  })

  test('are closed when they send nothing', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { peers } = await openPeer(1)
      const silent = await connected(peers.port)
      const speaking = await connected(peers.port)
      const receivedFrame = new Promise<void>((resolve) => peers.receive(() => resolve()))
      const [sender, frame] = [encodeSender({ node: 2, address: '127.0.0.1:1' }), frameOf(2, 'x')]
      speaking.socket.write(Buffer.concat([frameHead(FRAME_SENDER, sender.length), sender]))
      speaking.socket.write(Buffer.concat([frameHead(FRAME_REPLICA, frame.length), frame]))
      await receivedFrame
      vi.advanceTimersByTime(FIRST_FRAME_TIMEOUT_MS + 1)
      await silent.closed
      expect(speaking.socket.destroyed).toBe(false)
      speaking.socket.destroy()
    } finally {
      vi.useRealTimers()
    }
  })

  test('reports the end of a peer when its connection ends and the next one is refused', async () => {
    const tookMs: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const [one, two] = [await openPeer(1), await openPeer(2)]
      const ended: number[] = []
      one.peers.onEnded((peer) => ended.push(peer))
      one.peers.setPeers(new Map([[2, two.address]]))
      one.send(2, 'control', 'hello')
      await until(() => two.received.length === 1, 'the frame')
      expect(ended).toEqual([])
      const start = performance.now()
      await two.peers.close()
      await until(() => ended.length > 0, 'the end')
      tookMs.push(performance.now() - start)
      expect(ended[0]).toBe(2)
    }
    // The fastest round, because a busy machine delays the others.
    expect(Math.min(...tookMs)).toBeLessThan(SOON_MS)
  })

  test('reconnects after a lost connection, and reports no end', async () => {
    const [one, two] = [await openPeer(1), await openPeer(2)]
    const ended: number[] = []
    one.peers.onEnded((peer) => ended.push(peer))
    let connections = 0
    const relay = createServer((socket) => {
      connections++
      const upstream = connect(two.peers.port, '127.0.0.1')
      socket.pipe(upstream)
      upstream.on('error', () => {})
      socket.on('error', () => {})
      if (connections === 1) upstream.once('connect', () => setTimeout(() => socket.destroy(), 20))
    })
    relay.listen(0, '127.0.0.1')
    await once(relay, 'listening')
    try {
      one.peers.setPeers(new Map([[2, `127.0.0.1:${(relay.address() as { port: number }).port}`]]))
      one.send(2, 'control', 'hello')
      await until(() => connections === 2, 'a second connection')
      expect(ended).toEqual([])
    } finally {
      await one.peers.close()
      relay.close()
    }
  })
})
