import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  decodeSender,
  encodeSender,
  FRAME_ANSWER,
  FRAME_ASK,
  FRAME_REPLICA,
  FRAME_SENDER,
  frameHead,
} from '../../src/peers/framing.js'
import { FIRST_FRAME_TIMEOUT_MS, TcpTransport } from '../../src/peers/transport.js'

const LIMIT_MS = 30_000
/** Far below the shortest election timeout. */
const SOON_MS = 400
const ROUNDS = 4
const all: TcpTransport[] = []

afterEach(async () => {
  await Promise.all(all.splice(0).map((peers) => peers.close()))
})

async function member(node: number) {
  const peers = await TcpTransport.listen({ host: '127.0.0.1', port: 0 })
  all.push(peers)
  const address = `127.0.0.1:${peers.port}`
  peers.introduce({ node, address })
  const received: string[] = []
  peers.receive((_from, frame) => received.push(Buffer.from(frame).toString()))
  return { node, peers, address, received }
}

async function until(isTrue: () => boolean, what: string): Promise<void> {
  const end = performance.now() + LIMIT_MS
  while (!isTrue()) {
    if (performance.now() > end) throw new Error(`not within ${LIMIT_MS} ms: ${what}`)
    await sleep(5)
  }
}

const frame = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))

describe('the way to the other members', () => {
  test('a member answers one that it does not know yet, as soon as that one has sent something', async () => {
    const [old, young] = [await member(1), await member(2)]
    // The young one was told of the old one; nobody has told the old one of the young one.
    young.peers.setPeers(new Map([[old.node, old.address]]))
    old.peers.send(young.node, 'control', frame('too early'))
    young.peers.send(old.node, 'bulk', frame('a chunk'))
    await until(() => old.received.length === 1, 'the chunk')
    old.peers.send(young.node, 'control', frame('its answer'))
    await until(() => young.received.length === 1, 'the answer')
    expect(young.received).toEqual(['its answer'])
  })

  test('what the configuration says of a member counts more than what a sender says of itself', async () => {
    const [one, liar, real] = [await member(1), await member(2), await member(2)]
    one.peers.setPeers(new Map([[2, real.address]]))
    liar.peers.setPeers(new Map([[1, one.address]]))
    liar.peers.send(1, 'control', frame('I am 2'))
    await until(() => one.received.length === 1, 'the liar')
    one.peers.send(2, 'control', frame('for 2'))
    await until(() => real.received.length === 1, 'the real one')
    expect(liar.received).toEqual([])
  })

  test('only the newest strangers are remembered', async () => {
    const old = await member(1)
    const strangers = await Promise.all(Array.from({ length: 20 }, (_, i) => member(100 + i)))
    for (const [i, stranger] of strangers.entries()) {
      stranger.peers.setPeers(new Map([[1, old.address]]))
      stranger.peers.send(1, 'control', frame(String(i)))
      await until(() => old.received.length === i + 1, `stranger ${i}`)
    }
    for (const { node } of strangers) old.peers.send(node, 'control', frame('hello'))
    await until(() => strangers.filter(({ received }) => received.length === 1).length === 16, '16 of 20')
    expect(strangers.slice(0, 4).every(({ received }) => received.length === 0)).toBe(true)
  })

  test('a sender is a node number and an address, and nothing else', () => {
    const sender = { node: 2 ** 52 + 1, address: '[::1]:5101' }
    expect(decodeSender(encodeSender(sender))).toEqual(sender)
    expect(decodeSender(new Uint8Array(8))).toBeUndefined()
    expect(decodeSender(encodeSender({ node: 0, address: 'x:1' }))).toBeUndefined()
    expect(decodeSender(new Uint8Array(20).fill(255))).toBeUndefined()
  })
})

describe('whoever else connects to a member', () => {
  const connected = async (port: number) => {
    const socket = connect({ host: '127.0.0.1', port })
    const closed = once(socket, 'close')
    socket.on('error', () => {})
    await once(socket, 'connect')
    return { socket, closed }
  }

  test('is cut off at a frame that is too long for its kind, or that nobody has asked for', async () => {
    const { peers, received } = await member(1)
    const frames = [
      [FRAME_ASK, 64 * 1024 + 1],
      [FRAME_ANSWER, 0],
      [FRAME_ANSWER, 1000 * 1024 * 1024],
      [FRAME_REPLICA, 64 * 1024 * 1024 + 1],
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

  test('is closed when it says nothing, so that members find a place', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { peers } = await member(1)
      const silent = await connected(peers.port)
      const speaking = await connected(peers.port)
      const met = new Promise<void>((resolve) => peers.receive(() => resolve()))
      speaking.socket.write(Buffer.concat([frameHead(FRAME_REPLICA, 1), Buffer.from('x')]))
      await met
      vi.advanceTimersByTime(FIRST_FRAME_TIMEOUT_MS + 1)
      await silent.closed
      expect(speaking.socket.destroyed).toBe(false)
      speaking.socket.destroy()
    } finally {
      vi.useRealTimers()
    }
  })

  test('tells that the process of a peer has ended when its connection ends and the next is refused', async () => {
    const tookMs: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const [one, two] = [await member(1), await member(2)]
      const ended: number[] = []
      one.peers.onEnded((peer) => ended.push(peer))
      one.peers.setPeers(new Map([[2, two.address]]))
      one.peers.send(2, 'control', frame('hello'))
      await until(() => two.received.length === 1, 'the frame')
      expect(ended).toEqual([])
      const begun = performance.now()
      await two.peers.close()
      await until(() => ended.length > 0, 'the news')
      tookMs.push(performance.now() - begun)
      expect(ended[0]).toBe(2)
    }
    // The best: other work on this machine is not what this is about.
    expect(Math.min(...tookMs)).toBeLessThan(SOON_MS)
  })

  test('a connection that only ends is made anew, and nobody is called ended', async () => {
    const [one, two] = [await member(1), await member(2)]
    const ended: number[] = []
    one.peers.onEnded((peer) => ended.push(peer))
    let connections = 0
    const relay = createServer((socket) => {
      connections++
      const onward = connect(two.peers.port, '127.0.0.1')
      socket.pipe(onward)
      onward.on('error', () => {})
      socket.on('error', () => {})
      if (connections === 1) onward.once('connect', () => setTimeout(() => socket.destroy(), 20))
    })
    relay.listen(0, '127.0.0.1')
    await once(relay, 'listening')
    try {
      one.peers.setPeers(new Map([[2, `127.0.0.1:${(relay.address() as { port: number }).port}`]]))
      one.peers.send(2, 'control', frame('hello'))
      await until(() => connections === 2, 'a second connection')
      expect(ended).toEqual([])
    } finally {
      await one.peers.close()
      relay.close()
    }
  })
})
