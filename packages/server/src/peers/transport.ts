import { randomBytes } from 'node:crypto'
import type { Server, Socket } from 'node:net'
import { InvalidError, UnavailableError } from '@leasehold/core'
import type { Network } from '@leasehold/replica'
import {
  decodeSender,
  FRAME_ANSWER,
  FRAME_ASK,
  FRAME_REFUSED,
  FRAME_REPLICA,
  FRAME_SENDER,
  frameHead,
  instanceOf,
  readFrames,
  type Sender,
  SERVED_FRAMES,
} from './framing.js'
import { type Address, parseAddress } from './address.js'
import { type Dialer, plainDialer } from './dialer.js'
import { FrameGate } from './frame-gate.js'
import { type Instance, Instances } from './instances.js'
import { PeerConnection } from './peer-connection.js'
import { fetchBootstrapStatus } from './bootstrap-status.js'

/** Heartbeats and votes wait behind nothing else; a few of them are enough. */
const CONTROL_QUEUE_BYTES = 1024 * 1024
const BULK_QUEUE_BYTES = 96 * 1024 * 1024
const CONNECTIONS_MAX = 256
/** A connection without a whole frame in this time is closed. */
export const FIRST_FRAME_TIMEOUT_MS = 10_000
/** Senders that are no peers as far as this member knows, and that it answers all the same. */
const STRANGERS_MAX = 16

/** The two ways to one peer. */
interface PeerConnections {
  readonly address: string
  readonly control: PeerConnection
  readonly bulk: PeerConnection
}

/**
 * The way to the other members over TCP: per peer two connections, so that a snapshot on one never holds a heartbeat on
 * the other. Frames carry their own checksum, cluster and sender; what does not belong here is refused above. The same
 * port answers questions of members that begin.
 *
 * Every connection begins with the number and the address of its sender: a member that begins, or was away for long, does
 * not know those that have joined meanwhile, and must answer them to learn of it.
 */
export class TcpTransport implements Network {
  private handler: ((from: number, frame: Uint8Array) => void) | undefined
  private ended: ((peer: number) => void) | undefined
  private answer: ((question: Uint8Array) => Promise<Uint8Array>) | undefined
  private readonly lanes = new Map<number, PeerConnections>()
  /** Where senders listen that are no peers as far as this member knows; the newest last. */
  private readonly strangers = new Map<number, PeerConnections>()
  private self: (Sender & { readonly instance: string }) | undefined
  private readonly sockets = new Set<Socket>()
  /** Minted at every start. */
  readonly instance = randomBytes(8).toString('hex')
  private readonly instances: Instances
  /** Incoming connections whose sender has said which instance it is. */
  private readonly callers = new Map<Socket, Instance>()
  private refused: ((other: string) => void) | undefined
  /** A refusal that came before anybody listened for it. */
  private refusal: string | undefined

  private readonly server: Server

  private constructor(readonly dialer: Dialer) {
    this.server = dialer.server((socket) => this.accept(socket))
    this.server.maxConnections = CONNECTIONS_MAX
    this.instances = new Instances((address) => fetchBootstrapStatus(dialer, address))
  }

  /** @throws UnavailableError when the address cannot be listened on */
  static async listen(address: Address, dialer: Dialer = plainDialer): Promise<TcpTransport> {
    const peers = new TcpTransport(dialer)
    const { server } = peers
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) => {
        const where = `${address.host}:${address.port}`
        const hint = 'does another member listen there already? Choose another --peer-listen, or stop it'
        reject(new UnavailableError(`cannot listen for members on ${where}`, { cause, hint }))
      })
      server.listen(address.port, address.host, () => {
        server.removeAllListeners('error')
        server.on('error', () => {})
        resolve()
      })
    })
    return peers
  }

  get port(): number {
    return (this.server.address() as { port: number }).port
  }

  private accept(socket: Socket): void {
    this.sockets.add(socket)
    // Members connect to say something. Who says nothing takes the place of one.
    const silent = setTimeout(() => socket.destroy(), FIRST_FRAME_TIMEOUT_MS)
    socket.once('close', () => {
      clearTimeout(silent)
      this.sockets.delete(socket)
      this.callers.delete(socket)
    })
    socket.on('error', () => {})
    const gate = new FrameGate((frame) => this.handler?.(0, frame))
    let sender: Sender | undefined
    readFrames(socket, SERVED_FRAMES, (kind, content) => {
      clearTimeout(silent)
      if (kind === FRAME_REPLICA) gate.pass(content)
      else if (kind === FRAME_SENDER) sender = this.hear(socket, gate, sender, decodeSender(content))
      else if (kind === FRAME_ASK && this.answer !== undefined) {
        this.answer(content).then(
          (answer) => {
            socket.write(frameHead(FRAME_ANSWER, answer.length))
            socket.end(answer)
          },
          () => socket.destroy(),
        )
      } else socket.destroy()
    })
  }

  /** Says who this member is, and where the others reach it. To be called before the first frame is sent. */
  introduce(self: Sender): void {
    this.self = { ...self, instance: this.instance }
  }

  /** Runs when a peer refuses this process, because another one with the same node number lives at the address `other`. */
  onRefused(handler: (other: string) => void): void {
    this.refused = handler
    if (this.refusal !== undefined) handler(this.refusal)
  }

  /** Takes one frame about the sender of a connection. Returns who it is. */
  private hear(
    socket: Socket,
    gate: FrameGate,
    sender: Sender | undefined,
    said: Sender | undefined,
  ): Sender | undefined {
    const instance = said && instanceOf(said)
    if (said === undefined || instance === undefined) {
      this.met(said)
      return said ?? sender
    }
    // A second instance is told apart by its node number: who is no peer has none that counts.
    const known = this.lanes.get(said.node)?.address
    if (sender?.node === said.node && known !== undefined)
      this.admit(socket, gate, { node: said.node, instance, address: sender.address }, known)
    return sender
  }

  private admit(socket: Socket, gate: FrameGate, caller: Instance, known: string): void {
    this.callers.set(socket, caller)
    if (this.instances.isAdmitted(caller)) return
    gate.close()
    void this.instances.admit(caller, known).then((other) => {
      if (socket.destroyed) return
      if (other === undefined) {
        this.dropOthers(caller)
        gate.open()
        return
      }
      const content = Buffer.from(other)
      socket.write(frameHead(FRAME_REFUSED, content.length))
      socket.end(content)
    })
  }

  /** What an instance before this one has not yet said is not heard any more. */
  private dropOthers({ node, instance }: Instance): void {
    for (const [socket, caller] of this.callers)
      if (caller.node === node && caller.instance !== instance) socket.destroy()
  }

  private met(sender: Sender | undefined): void {
    if (sender === undefined || this.lanes.has(sender.node)) return
    const { node, address } = sender
    const known = this.strangers.get(node)
    if (known?.address === address) return
    const lanes = this.open(address)
    if (lanes === undefined) return
    this.forget(node)
    this.strangers.set(node, lanes)
    const [oldest] = this.strangers.keys()
    if (this.strangers.size > STRANGERS_MAX && oldest !== undefined) this.forget(oldest)
  }

  private forget(node: number): void {
    const lanes = this.strangers.get(node)
    if (lanes === undefined) return
    closeConnections(lanes)
    this.strangers.delete(node)
  }

  /** Connects when there is something to send. Undefined: what a stranger says is no address. */
  private open(address: string, ended?: () => void): PeerConnections | undefined {
    try {
      const { host, port } = parseAddress(address)
      const refused = (other: string): void => {
        this.refusal ??= other
        this.refused?.(other)
      }
      return {
        address,
        control: new PeerConnection(this.dialer, host, port, CONTROL_QUEUE_BYTES, this.self, refused, ended),
        bulk: new PeerConnection(this.dialer, host, port, BULK_QUEUE_BYTES, this.self, refused),
      }
    } catch (error) {
      if (error instanceof InvalidError) return undefined
      throw error
    }
  }

  receive(handler: (from: number, frame: Uint8Array) => void): void {
    this.handler = handler
  }

  onEnded(handler: (peer: number) => void): void {
    this.ended = handler
  }

  /** Who answers questions; replaced when the member has begun. */
  onQuestion(answer: (question: Uint8Array) => Promise<Uint8Array>): void {
    this.answer = answer
  }

  /** @throws InvalidError for an address that is none */
  setPeers(peers: ReadonlyMap<number, string>): void {
    this.instances.keepOnly(new Set(peers.keys()))
    for (const [node, lanes] of this.lanes) {
      if (peers.get(node) === lanes.address) continue
      closeConnections(lanes)
      this.lanes.delete(node)
    }
    for (const [node, address] of peers) {
      if (address === '' || this.lanes.has(node)) continue
      parseAddress(address)
      this.forget(node)
      this.lanes.set(node, this.open(address, () => this.ended?.(node)) as PeerConnections)
    }
  }

  send(to: number, lane: 'control' | 'bulk', frame: Uint8Array): void {
    const lanes = this.lanes.get(to) ?? this.strangers.get(to)
    lanes?.[lane].send(frame)
  }

  async close(): Promise<void> {
    for (const lanes of [...this.lanes.values(), ...this.strangers.values()]) closeConnections(lanes)
    this.lanes.clear()
    this.strangers.clear()
    for (const socket of this.sockets) socket.destroy()
    this.dialer.close()
    await new Promise<void>((resolve) => this.server.close(() => resolve()))
  }
}

function closeConnections({ control, bulk }: PeerConnections): void {
  control.close()
  bulk.close()
}
