import type { Network } from '@leasehold/replica'
import type { Process } from '../world/process.js'
import type { SimulatedMember } from './member.js'

const PORT = 'members'

/** The way from one member's process to the others, as frames that stand alone. Peers are names of machines. */
export function peerNetwork(process: Process, member: SimulatedMember): Network {
  const { network } = process.world
  let peers: ReadonlyMap<number, string> = new Map()
  return {
    send(to, _lane, frame) {
      const machine = peers.get(to)
      if (machine === undefined || !member.effect(process)) return
      network.send(process, { machine, port: PORT }, frame)
    },
    receive(handler) {
      // A process that has died while it began runs on to the end of its turn.
      if (process.alive) network.bind<Uint8Array>(process, PORT, (frame) => handler(0, frame))
    },
    setPeers(next) {
      peers = next
    },
  }
}
