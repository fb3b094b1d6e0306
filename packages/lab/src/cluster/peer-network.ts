import { type Network, type PeekedMessage, peekMessage } from '@leasehold/replica'
import type { Process } from '../world/process.js'
import type { SimulatedMember } from './simulated-member.js'

const PORT = 'members'

/**
 * The way from one member's process to the others, as frames that stand alone. Peers are names of machines. As over TCP,
 * a member that begins learns from its peers where to answer, though it does not know them yet: `nodeOf` is
 * what a sender says of itself.
 */
export function peerNetwork(
  process: Process,
  member: SimulatedMember,
  nodeOf: (machine: string) => number | undefined,
  says: (message: PeekedMessage) => void,
): Network {
  const { network } = process.world
  let peers: ReadonlyMap<number, string> = new Map()
  const strangers = new Map<number, string>()
  return {
    send(to, _lane, frame) {
      const machine = peers.get(to) ?? strangers.get(to)
      if (machine === undefined || !member.speaks(process)) return
      const message = peekMessage(frame)
      if (message) says(message)
      network.send(process, { machine, port: PORT }, frame)
    },
    receive(handler) {
      // A process that has died while it began runs on to the end of its turn.
      if (!process.alive) return
      network.bind<Uint8Array>(process, PORT, (frame, from) => {
        const node = nodeOf(from)
        if (node !== undefined) strangers.set(node, from)
        handler(0, frame)
      })
    },
    setPeers(next) {
      peers = next
    },
  }
}
