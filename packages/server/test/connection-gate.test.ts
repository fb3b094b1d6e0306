import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ConnectionGate, connectionLimits } from '../src/connection-gate.js'

/** The parts of a socket that the gate uses. */
class FakeSocket extends EventEmitter {
  readonly remoteAddress = '127.0.0.1'
  readonly remotePort: number
  isOpen = true

  constructor(remotePort: number) {
    super()
    this.remotePort = remotePort
  }

  destroy(): void {
    this.isOpen = false
    this.emit('close')
  }
}

function accept(gate: ConnectionGate, port: number): FakeSocket & Socket {
  const socket = new FakeSocket(port) as FakeSocket & Socket
  gate.accept(socket)
  return socket
}

const openOf = (sockets: readonly FakeSocket[]) => sockets.map(({ isOpen }) => isOpen)

describe('ConnectionGate', () => {
  test('evicts the oldest new connection, and no established one', () => {
    const gate = new ConnectionGate({ fresh: 2, established: 2 })
    const sockets = [1, 2].map((port) => accept(gate, port))
    gate.establish(sockets[0] as Socket)
    sockets.push(accept(gate, 3), accept(gate, 4))
    expect(openOf(sockets)).toEqual([true, false, true, true])
  })

  test('closes a connection that is established above the limit, until another one closes', () => {
    const gate = new ConnectionGate({ fresh: 2, established: 1 })
    const first = accept(gate, 1)
    gate.establish(first)
    gate.establish(first)
    const second = accept(gate, 2)
    gate.establish(second)
    first.destroy()
    const third = accept(gate, 3)
    gate.establish(third)
    expect(openOf([first, second, third])).toEqual([false, false, true])
  })
})

describe('connectionLimits', () => {
  test.each([256, 1_024, 4_096, 65_536])('leaves a reserve of %i files', (descriptors) => {
    const { clients, peers } = connectionLimits(descriptors)
    const all = clients.fresh + clients.established + peers.fresh + peers.established
    expect(all).toBeLessThanOrEqual(descriptors - 96)
    expect(Math.min(clients.fresh, clients.established, peers.fresh, peers.established)).toBeGreaterThan(10)
  })

  test('follows the limit of files only up to a maximum', () => {
    expect(connectionLimits(1_000_000)).toEqual(connectionLimits(100_000))
  })
})
