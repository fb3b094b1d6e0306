import { randomBytes } from 'node:crypto'
import type { Server, Socket } from 'node:net'
import { InvalidError, UnavailableError } from '@leasehold/core'
import { frameSender, type Logger, type Network } from '@leasehold/replica'
import { ConnectionGate, connectionLimits, descriptorLimit } from '../connection-gate.js'
import { type Address, parseAddress } from './address.js'
import { fetchBootstrapStatus } from './bootstrap-status.js'
import { type Dialer, plainDialer } from './dialer.js'
import { FrameGate } from './frame-gate.js'
import {
  decodeSender,
  FIRST_FRAMES,
  FRAME_ANSWER,
  FRAME_REQUEST,
  FRAME_REFUSED,
  FRAME_REPLICA,
  FRAME_SENDER,
  frameHead,
  instanceOf,
  readFrames,
  type Sender,
  SERVER_FRAMES,
} from './framing.js'
import { FIRST_FRAME_TIMEOUT_MS } from '../limits.js'
import { type Instance, Instances } from './instances.js'
import { PeerConnection } from './peer-connection.js'
import { PeerIdentity } from './peer-identity.js'

/** Small, because only heartbeats and votes use this connection. */
const CONTROL_QUEUE_BYTES = 1024 * 1024
const BULK_QUEUE_BYTES = 96 * 1024 * 1024
/** Senders that are not known as peers but get answers. */
const UNKNOWN_SENDERS_MAX = 16

/** Rejections are logged at most this often. */
const REJECTION_LOG_MS = 1_000

export interface TransportOptions {
  readonly dialer?: Dialer
  /** Decides which callers are members, with TLS. */
  readonly identity?: PeerIdentity
  readonly log?: Logger
}

/** The two connections to one peer. */
interface PeerConnections {
  readonly address: string
  readonly control: PeerConnection
  readonly bulk: PeerConnection
}

/**
 * The TCP transport between members. Each peer has two connections, so that a snapshot on one never delays a heartbeat on
 * the other. Frames contain their own checksum, cluster and sender; the replica rejects those that do not belong to it.
 * The same port answers requests of members that bootstrap or rejoin.
 *
 * With TLS, the certificate of a caller decides which member it is ({@link PeerIdentity}). A connection belongs to the one
 * member that its first frame names: a frame of another sender closes it.
 *
 * Every connection starts with the node number and the address of its sender. A member that is new, or was offline for a
 * long time, does not know the members that joined meanwhile, and must answer them to learn about them.
 */
export class TcpTransport implements Network {
  readonly dialer: Dialer
  /** The id of this run of the process. */
  readonly instance = randomBytes(8).toString('hex')
  readonly #server: Server
  readonly #instances: Instances
  readonly #connections = new ConnectionGate(connectionLimits(descriptorLimit()).peers)
  readonly #sockets = new Set<Socket>()
  readonly #peers = new Map<number, PeerConnections>()
  /** Connections to senders that are not known as peers; the newest last. */
  readonly #unknownSenders = new Map<number, PeerConnections>()
  /** Incoming connections whose sender has introduced its instance. */
  readonly #callers = new Map<Socket, Instance>()
  #self: (Sender & { readonly instance: string }) | undefined
  #onFrame: ((from: number, frame: Uint8Array) => void) | undefined
  #onPeerEnded: ((peer: number) => void) | undefined
  #onRequest: ((request: Uint8Array) => Promise<Uint8Array>) | undefined
  #onRefusal: ((other: string) => void) | undefined
  /** The first rejection, kept for a handler that is registered later. */
  #refusal: string | undefined

  readonly #identity: PeerIdentity
  readonly #log: Logger | undefined
  #rejections = 0
  #rejectionLoggedAt = Number.NEGATIVE_INFINITY

  /** For `listen` only. */
  constructor({ dialer = plainDialer, identity = new PeerIdentity(), log }: TransportOptions) {
    this.dialer = dialer
    this.#identity = identity
    this.#log = log
    this.#server = dialer.server((socket) => this.#accept(socket))
    this.#server.on('connection', (socket: Socket) => this.#connections.accept(socket))
    this.#instances = new Instances((address) => fetchBootstrapStatus(dialer, address))
  }

  /** @throws UnavailableError when it cannot listen on the address */
  static async listen(address: Address, options: TransportOptions = {}): Promise<TcpTransport> {
    const transport = new TcpTransport(options)
    const server = transport.#server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) => {
        const where = `${address.host}:${address.port}`
        const hint = 'does another member already listen there? Choose another --peer-listen, or stop it'
        reject(new UnavailableError(`cannot listen for members on ${where}`, { cause, hint }))
      })
      server.listen(address.port, address.host, () => {
        server.removeAllListeners('error')
        server.on('error', () => {})
        resolve()
      })
    })
    return transport
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  /** Sets the node number and the address of this member. Must be called before the first frame is sent. */
  introduce(self: Sender): void {
    this.#self = { ...self, instance: this.instance }
  }

  /** Called when a peer rejects this process because another one with the same node number runs at the address `other`. */
  onRefused(handler: (other: string) => void): void {
    this.#onRefusal = handler
    if (this.#refusal !== undefined) handler(this.#refusal)
  }

  receive(handler: (from: number, frame: Uint8Array) => void): void {
    this.#onFrame = handler
  }

  onEnded(handler: (peer: number) => void): void {
    this.#onPeerEnded = handler
  }

  /** Sets the handler of requests, which replaces the previous one. */
  onRequest(answer: (request: Uint8Array) => Promise<Uint8Array>): void {
    this.#onRequest = answer
  }

  /** @throws InvalidError for a malformed address */
  setPeers(peers: ReadonlyMap<number, string>): void {
    this.#instances.keepOnly(new Set(peers.keys()))
    for (const [node, connections] of this.#peers) {
      if (peers.get(node) === connections.address) continue
      closeAll(connections)
      this.#peers.delete(node)
    }
    for (const [node, address] of peers) {
      if (address === '' || this.#peers.has(node)) continue
      parseAddress(address)
      this.#removeUnknown(node)
      this.#peers.set(node, this.#connect(address, () => this.#onPeerEnded?.(node)) as PeerConnections)
    }
  }

  send(to: number, lane: 'control' | 'bulk', frame: Uint8Array): void {
    const connections = this.#peers.get(to) ?? this.#unknownSenders.get(to)
    connections?.[lane].send(frame)
  }

  async close(): Promise<void> {
    for (const connections of [...this.#peers.values(), ...this.#unknownSenders.values()]) closeAll(connections)
    this.#peers.clear()
    this.#unknownSenders.clear()
    for (const socket of this.#sockets) socket.destroy()
    this.dialer.close()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    // A silent connection would occupy the place of a member.
    const timeout = setTimeout(() => socket.destroy(), FIRST_FRAME_TIMEOUT_MS)
    socket.once('close', () => {
      clearTimeout(timeout)
      this.#sockets.delete(socket)
      this.#callers.delete(socket)
    })
    socket.on('error', () => {})
    const problem = this.#identity.problemOfCaller(socket, this.#addresses())
    if (problem !== undefined) return this.#reject(socket, problem)
    const gate = new FrameGate((frame) => this.#onFrame?.(sender?.node ?? 0, frame))
    let sender: Sender | undefined
    let isAnswering = false
    // A caller that has not introduced itself cannot make this process buffer a large frame.
    const limits = () => (sender === undefined ? FIRST_FRAMES : SERVER_FRAMES)
    readFrames(socket, limits, (kind, content) => {
      clearTimeout(timeout)
      this.#connections.establish(socket)
      if (kind === FRAME_REPLICA) {
        if (frameSender(content) === sender?.node) gate.pass(content)
        else this.#reject(socket, `it sent a frame of a node that is not ${sender?.node}`)
      } else if (kind === FRAME_SENDER) sender = this.#introduced(socket, gate, sender, decodeSender(content))
      else if (kind === FRAME_REQUEST && this.#onRequest !== undefined && !isAnswering) {
        isAnswering = true
        this.#onRequest(content).then(
          (answer) => {
            socket.write(frameHead(FRAME_ANSWER, answer.length))
            socket.end(answer)
          },
          () => socket.destroy(),
        )
      } else socket.destroy()
    })
  }

  *#addresses(): Iterable<string> {
    for (const { address } of this.#peers.values()) yield address
  }

  #reject(socket: Socket, why: string): void {
    this.#rejections++
    const now = performance.now()
    if (now - this.#rejectionLoggedAt >= REJECTION_LOG_MS) {
      this.#rejectionLoggedAt = now
      this.#log?.warn('rejected a connection to the peer port', {
        remote: socket.remoteAddress,
        why,
        rejected: this.#rejections,
      })
    }
    socket.destroy()
  }

  /** Handles a sender frame of a connection. Returns the sender of the connection. */
  #introduced(
    socket: Socket,
    gate: FrameGate,
    sender: Sender | undefined,
    frame: Sender | undefined,
  ): Sender | undefined {
    if (frame === undefined || (sender !== undefined && sender.node !== frame.node)) {
      this.#reject(socket, 'it introduced itself in a way that is not valid')
      return sender
    }
    const instance = instanceOf(frame)
    const known = this.#peers.get(frame.node)?.address
    if (instance === undefined) {
      const problem = this.#identity.problemOfMember(socket, known ?? frame.address)
      if (problem !== undefined) {
        this.#reject(socket, problem)
        return sender
      }
      this.#addUnknown(frame)
      return frame
    }
    // Only known peers have a node number that could be duplicated.
    if (sender !== undefined && known !== undefined)
      this.#admit(socket, gate, { node: frame.node, instance, address: sender.address }, known)
    return sender
  }

  /** Closes the gate of the connection until its instance is admitted; rejects it if another instance runs. */
  #admit(socket: Socket, gate: FrameGate, caller: Instance, known: string): void {
    this.#callers.set(socket, caller)
    if (this.#instances.isAdmitted(caller)) return
    gate.close()
    void this.#instances.admit(caller, known).then((other) => {
      if (socket.destroyed) return
      if (other === undefined) {
        this.#dropOtherInstances(caller)
        gate.open()
        return
      }
      const content = Buffer.from(other)
      socket.write(frameHead(FRAME_REFUSED, content.length))
      socket.end(content)
    })
  }

  /** Closes connections of earlier instances, whose remaining frames are no longer accepted. */
  #dropOtherInstances({ node, instance }: Instance): void {
    for (const [socket, caller] of this.#callers)
      if (caller.node === node && caller.instance !== instance) socket.destroy()
  }

  /** Keeps connections to a sender that is not a known peer, so that it gets answers; evicts the oldest one. */
  #addUnknown(sender: Sender | undefined): void {
    if (sender === undefined || this.#peers.has(sender.node)) return
    const { node, address } = sender
    const known = this.#unknownSenders.get(node)
    if (known?.address === address) return
    const connections = this.#connect(address)
    if (connections === undefined) return
    this.#removeUnknown(node)
    this.#unknownSenders.set(node, connections)
    const [oldest] = this.#unknownSenders.keys()
    if (this.#unknownSenders.size > UNKNOWN_SENDERS_MAX && oldest !== undefined) this.#removeUnknown(oldest)
  }

  #removeUnknown(node: number): void {
    const connections = this.#unknownSenders.get(node)
    if (connections === undefined) return
    closeAll(connections)
    this.#unknownSenders.delete(node)
  }

  /** Creates connections, which connect when there is something to send. Undefined for a malformed address. */
  #connect(address: string, onEnded?: () => void): PeerConnections | undefined {
    try {
      const onRefused = (other: string): void => {
        this.#refusal ??= other
        this.#onRefusal?.(other)
      }
      const common = { ...parseAddress(address), dialer: this.dialer, sender: () => this.#self, onRefused }
      return {
        address,
        control: new PeerConnection({ ...common, queueBytesMax: CONTROL_QUEUE_BYTES, onEnded }),
        bulk: new PeerConnection({ ...common, queueBytesMax: BULK_QUEUE_BYTES }),
      }
    } catch (error) {
      if (error instanceof InvalidError) return undefined
      throw error
    }
  }
}

function closeAll({ control, bulk }: PeerConnections): void {
  control.close()
  bulk.close()
}
