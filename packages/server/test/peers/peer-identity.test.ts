import { connect as connectTls, type TLSSocket } from 'node:tls'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { tlsDialer } from '../../src/peers/dialer.js'
import { encodeSender, FRAME_REQUEST, FRAME_REPLICA, FRAME_SENDER, frameHead } from '../../src/peers/framing.js'
import { parseAllowedNames, PeerIdentity } from '../../src/peers/peer-identity.js'
import { TcpTransport } from '../../src/peers/transport.js'
import { Authority } from '../support/certificates.js'
import { frameOf } from '../support/peers.js'

const authority = new Authority()
const open: { close(): Promise<unknown> | void }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})
afterAll(() => authority.remove())

interface Warning {
  readonly message: string
  readonly why: string
}

/** The member n1 of three, which takes TLS connections on loopback, and what it has rejected. */
async function member(allowed?: readonly string[]) {
  const warnings: Warning[] = []
  const log = {
    info() {},
    error() {},
    warn(message: string, fields?: object) {
      if (message.startsWith('rejected')) warnings.push({ message, ...fields } as Warning)
    },
  }
  const files = { ...authority.issue('n1', { names: ['n1.example', 'localhost'] }), ca: authority.ca }
  const transport = await TcpTransport.listen(
    { host: '127.0.0.1', port: 0 },
    {
      dialer: tlsDialer(files, log),
      identity: new PeerIdentity(['n1.example:4200', 'n2.example:4200', 'n3.example:4200'], allowed),
      log,
    },
  )
  open.push(transport)
  const received: { from: number; bytes: number }[] = []
  transport.receive((from, frame) => void received.push({ from, bytes: frame.length }))
  transport.introduce({ node: 1, address: 'n1.example:4200' })
  transport.onRequest(() => Promise.resolve(Buffer.from('the status of n1')))
  transport.setPeers(
    new Map([
      [2, 'n2.example:4200'],
      [3, 'n3.example:4200'],
    ]),
  )
  return { transport, warnings, received }
}

/** A connection with the certificate of `name`, which need not be a member. */
async function connect(
  { port }: TcpTransport,
  names: readonly string[],
  usage?: 'clientAuth' | 'serverAuth,clientAuth',
): Promise<TLSSocket> {
  const { cert, key } = authority.issue(`caller-${names[0]}-${usage ?? 'any'}`, { names, ...(usage && { usage }) })
  const socket = connectTls({
    host: '127.0.0.1',
    port,
    servername: 'localhost',
    ca: readFileSync(authority.ca),
    cert: readFileSync(cert),
    key: readFileSync(key),
  })
  open.push({ close: () => void socket.destroy() })
  socket.on('error', () => {})
  // A rejected caller may see the end before it has seen the beginning.
  await new Promise((resolve) => socket.once('secureConnect', resolve).once('close', resolve))
  return socket
}

function send(socket: Socket, kind: number, content: Uint8Array): void {
  socket.write(Buffer.concat([frameHead(kind, content.length), content]))
}

const introduce = (socket: Socket, node: number, address: string): void =>
  send(socket, FRAME_SENDER, encodeSender({ node, address }))

const closed = (socket: Socket): Promise<unknown> =>
  socket.destroyed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve))

async function answer(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (data: Buffer) => (text += data.toString()))
  send(socket, FRAME_REQUEST, Buffer.from('{}'))
  await closed(socket)
  return text.slice(5)
}

describe('the peer port with TLS', () => {
  test('takes the frames of a member', async () => {
    const { transport, received } = await member()
    const socket = await connect(transport, ['n2.example'])
    introduce(socket, 2, 'n2.example:4200')
    send(socket, FRAME_REPLICA, frameOf(2, 'hello'))
    await expect.poll(() => received).toEqual([{ from: 2, bytes: frameOf(2, 'hello').length }])
    expect(await answer(await connect(transport, ['n3.example'], 'serverAuth,clientAuth'))).toBe('the status of n1')
  })

  test.each([
    ['a client of the same authority', ['app.example'], undefined, 'not for a member of this cluster'],
    ['a client whose certificate has a name of a member', ['n2.example'], 'clientAuth', 'is for clients'],
  ] as const)('tells nothing to %s', async (_who, names, usage, why) => {
    const { transport, warnings } = await member()
    expect(await answer(await connect(transport, names, usage))).toBe('')
    await expect
      .poll(() => warnings)
      .toEqual([expect.objectContaining({ why: expect.stringContaining(why) as string })])
  })

  test('closes a connection that introduces itself as another member', async () => {
    const { transport, received, warnings } = await member()
    const socket = await connect(transport, ['n2.example'])
    introduce(socket, 3, 'n3.example:4200')
    send(socket, FRAME_REPLICA, frameOf(3, 'hello'))
    await closed(socket)
    expect(received).toEqual([])
    expect(warnings[0]?.why).toContain('claims to be the member at n3.example:4200')
  })

  test('closes a connection of a member that sends a frame of another', async () => {
    const { transport, received } = await member()
    const socket = await connect(transport, ['n2.example'])
    introduce(socket, 2, 'n2.example:4200')
    send(socket, FRAME_REPLICA, frameOf(3, 'hello'))
    await closed(socket)
    expect(received).toEqual([])
  })

  test('closes a connection that changes its node number, or never introduced itself', async () => {
    const { transport, received } = await member()
    const changing = await connect(transport, ['n2.example'])
    introduce(changing, 2, 'n2.example:4200')
    introduce(changing, 9, 'n2.example:4200')
    await closed(changing)
    const silent = await connect(transport, ['n2.example'])
    send(silent, FRAME_REPLICA, frameOf(2, 'hello'))
    await closed(silent)
    expect(received).toEqual([])
  })

  test('rejects a member that is not among the allowed names', async () => {
    const { transport, warnings } = await member(parseAllowedNames('n1.example,n3.example'))
    expect(await answer(await connect(transport, ['n2.example']))).toBe('')
    expect(await answer(await connect(transport, ['n3.example']))).toBe('the status of n1')
    expect(warnings[0]?.why).toContain('--peer-tls-allowed-names')
  })

  test('takes a member that it does not know yet when its name is allowed', async () => {
    const { transport, received } = await member(parseAllowedNames('*.example'))
    const socket = await connect(transport, ['n4.example'])
    introduce(socket, 4, 'n4.example:4200')
    send(socket, FRAME_REPLICA, frameOf(4, 'hello'))
    await expect.poll(() => received).toEqual([{ from: 4, bytes: frameOf(4, 'hello').length }])
  })
})

test.each(['', 'a b', '*', 'n*.example', 'a,,b'])('%j is no list of allowed names', (text) => {
  expect(() => parseAllowedNames(text)).toThrow('is not a name')
})
