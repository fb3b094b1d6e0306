import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import {
  CLIENTS_MAX,
  DESCRIPTORS_DEFAULT,
  DESCRIPTORS_RESERVED,
  NEW_CLIENTS_MAX,
  NEW_PEERS_MAX,
  PEERS_MAX,
} from './limits.js'

export interface ConnectionLimits {
  /** Connections whose first request or frame has not arrived completely. */
  readonly fresh: number
  /** All others. */
  readonly established: number
}

/**
 * Limits the connections of one port. New connections have a small bucket of their own, from which the oldest is evicted:
 * connections that stay silent neither use up the file descriptors nor keep others out.
 */
export class ConnectionGate {
  readonly #limits: ConnectionLimits
  /** By remote address and port, which a TLS socket shares with its TCP socket; in the order of acceptance. */
  readonly #fresh = new Map<string, Socket>()
  readonly #established = new Set<Socket>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Adds a new TCP connection, and evicts the oldest new one if there are too many. */
  accept(socket: Socket): void {
    const key = keyOf(socket)
    this.#fresh.set(key, socket)
    socket.once('close', () => {
      if (this.#fresh.get(key) === socket) this.#fresh.delete(key)
      this.#established.delete(socket)
    })
    const [oldest] = this.#fresh
    if (this.#fresh.size <= this.#limits.fresh || oldest === undefined) return
    this.#fresh.delete(oldest[0])
    oldest[1].destroy()
  }

  /** Counts the connection, given by its TCP or TLS socket, as established, or closes it if there are too many. Idempotent. */
  establish(socket: Socket): void {
    const key = keyOf(socket)
    const connection = this.#fresh.get(key)
    if (connection === undefined) return
    this.#fresh.delete(key)
    if (this.#established.size >= this.#limits.established) connection.destroy()
    else this.#established.add(connection)
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

/** The limits of both ports under a limit of open files: together they leave the reserve for files and outgoing connections. */
export function connectionLimits(descriptors: number): { clients: ConnectionLimits; peers: ConnectionLimits } {
  const free = Math.max(0, descriptors - DESCRIPTORS_RESERVED)
  const share = (divisor: number, most: number) => Math.max(1, Math.min(most, Math.floor(free / divisor)))
  const peers = { fresh: share(8, NEW_PEERS_MAX), established: share(8, PEERS_MAX) }
  const fresh = share(4, NEW_CLIENTS_MAX)
  const left = free - fresh - peers.fresh - peers.established
  return { peers, clients: { fresh, established: Math.max(1, Math.min(CLIENTS_MAX, left)) } }
}

/** The limit of open files of this process, where Linux reports it, or a default. */
export function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? DESCRIPTORS_DEFAULT : Number(soft)
  } catch {
    return DESCRIPTORS_DEFAULT
  }
}
