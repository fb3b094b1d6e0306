import { afterEach } from 'vitest'
import { encodeBootstrapStatus } from '../../src/peers/bootstrap-status.js'
import { TcpTransport } from '../../src/peers/transport.js'

const open: TcpTransport[] = []

afterEach(async () => {
  await Promise.all(open.splice(0).map((peers) => peers.close()))
})

export interface PeerOptions {
  /** Where it listens; default: a free port. */
  readonly listen?: { readonly host: string; readonly port: number }
  /** The address that it announces; default: the one on which it listens. */
  readonly address?: string
  /** Whether it reports its instance when another member asks for its status; default: it answers nothing. */
  readonly reportsStatus?: boolean
}

/** The transport of a member. Closed after the test. */
export async function openPeer(node: number, { listen, address, reportsStatus = false }: PeerOptions = {}) {
  const peers = await TcpTransport.listen(listen ?? { host: '127.0.0.1', port: 0 })
  open.push(peers)
  const own = `127.0.0.1:${peers.port}`
  peers.introduce({ node, address: address ?? own })
  const received: string[] = []
  const refusals: string[] = []
  peers.receive((_from, frame) => received.push(textOf(frame)))
  peers.onRefused((other) => refusals.push(other))
  const { instance } = peers
  if (reportsStatus) {
    peers.onRequest(async () => encodeBootstrapStatus({ name: `n${node}`, node, list: '', instance }))
  }
  const send = (to: number, lane: 'control' | 'bulk', text: string): void => peers.send(to, lane, frameOf(node, text))
  return { node, peers, address: own, received, refusals, send }
}

/** Version, kind and cluster of a frame of the replica, whose sender follows. */
const HEAD = [1, 1, ...Array<number>(16).fill(0)]

/** A frame of the replica on node `node` (below 128), with a text in place of its content. */
export function frameOf(node: number, text: string): Uint8Array {
  return Uint8Array.from([...HEAD, node, ...Buffer.from(text)])
}

/** The text of such a frame. */
export function textOf(frame: Uint8Array): string {
  return Buffer.from(frame).toString('utf8', HEAD.length + 1)
}
