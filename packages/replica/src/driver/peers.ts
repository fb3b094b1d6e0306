import { CodecError, type Writer } from '@leasehold/core'
import type { Message, NodeId, Raft } from '@leasehold/raft'
import type { Identity } from '../storage/identity.js'
import { encodeMeta, type MemberInfo } from '../cluster-meta.js'
import { readMessage, writeMessage } from '../wire/consensus-messages.js'
import { type PeerKind, PeerFrames } from '../wire/peer-frames.js'
import { readStatement, writeStatement } from '../wire/statements.js'
import { AcknowledgedMemory } from '../rollback/acknowledged-memory.js'
import { AcknowledgedFile } from '../rollback/acknowledged-file.js'
import type { ReplicaSettings } from '../replica-options.js'
import { RollbackGuard } from '../rollback/rollback-guard.js'
import { type ReceivedSnapshot, SnapshotReceiver, SnapshotSender } from '../snapshots/snapshot-transfer.js'
import {
  type Chunk,
  type ChunkAck,
  readChunk,
  readChunkAck,
  writeChunk,
  writeChunkAck,
} from '../wire/snapshot-chunks.js'
import { TermGuard } from './term-guard.js'
import type { ExportRequest, StateExporter } from '../snapshots/state-exporter.js'

/** Every n-th rejected frame is logged. */
const LOG_EVERY = 1000
/** Interval for saving what members have acknowledged. */
const SAVE_EVERY_MS = 10_000

export interface PeersOptions {
  readonly settings: ReplicaSettings
  readonly identity: Identity
  readonly raft: Raft
  /** A message of consensus has arrived. */
  readonly step: (message: Message) => void
  /** Exports the state for peers that are too far behind for the log. */
  readonly exporter: StateExporter
  /** Runs when the process of another member is known to have ended. */
  readonly ended: (node: NodeId) => void
  /** Runs when a transfer to a peer has ended. */
  readonly transferred: (to: NodeId, done: boolean) => void
  /** Runs when a snapshot has arrived completely. {@link Peers.installed} acknowledges it. */
  readonly install: (received: ReceivedSnapshot) => void
  /** Another member has sent the hash of its state after an entry. */
  readonly hash: (from: NodeId, index: number, hash: string) => void
  /** Another member has sent the highest feature level that it knows. */
  readonly level: (from: NodeId, level: number) => void
  /** Runs the handling of a frame. An error stops the member. */
  readonly guard: (action: () => void) => void
}

/** The communication with the other members: frames, lanes, and snapshot transfers. */
export class Peers {
  readonly #options: PeersOptions
  readonly #frames: PeerFrames
  readonly #senders = new Map<NodeId, SnapshotSender>()
  /** Exports for peers that are still in progress. */
  readonly #requests = new Map<NodeId, ExportRequest>()
  readonly #receiver = new SnapshotReceiver()
  readonly memory = new AcknowledgedMemory()
  readonly #file: AcknowledgedFile
  readonly #rollbackGuard: RollbackGuard
  readonly #termGuard = new TermGuard()
  #saveAt: number
  #installing: ReceivedSnapshot | undefined
  #refusedFrames = 0

  constructor(options: PeersOptions) {
    this.#options = options
    const { settings, identity, raft, guard } = options
    const { disk, random, log, network, clock } = settings.platform
    const { memory } = this
    this.#frames = new PeerFrames(identity.cluster, identity.node)
    this.#file = new AcknowledgedFile({ disk, identity, memory, log, guard })
    this.#saveAt = clock.monotonicMs() + SAVE_EVERY_MS
    this.#rollbackGuard = new RollbackGuard({
      ...{ raft, identity, random, log, memory },
      electionTicks: settings.electionTicks,
      send: (to, statement) =>
        this.#sendFrame('statement', to, 'control', (writer) => writeStatement(writer, statement)),
    })
    network.receive((_from, bytes) => guard(() => this.#receive(bytes)))
    network.onEnded?.((node) => guard(() => options.ended(node)))
  }

  /** Whether the file of acknowledged entries is being written. */
  get isSaving(): boolean {
    return this.#file.isSaving
  }

  /** Saves what members have acknowledged. */
  save(): void {
    const { clock } = this.#options.settings.platform
    this.#saveAt = clock.monotonicMs() + SAVE_EVERY_MS
    this.#file.save()
  }

  /** Closes the file of acknowledged entries. */
  close(): void {
    this.#file.close()
  }

  /** Whether a received snapshot is being installed. Others are rejected meanwhile. */
  get isInstalling(): boolean {
    return this.#installing !== undefined
  }

  setMembers(members: readonly MemberInfo[]): void {
    const { identity, settings } = this.#options
    this.#rollbackGuard.setMembers(members)
    this.#termGuard.setMembers(members.map(({ node }) => node))
    const others = members.filter((member) => member.node !== identity.node && member.peer !== '')
    settings.platform.network.setPeers(new Map(others.map((member) => [member.node, member.peer])))
    for (const to of [...this.#senders.keys(), ...this.#requests.keys()]) {
      if (others.some((member) => member.node === to)) continue
      this.#stopTransfer(to)
      // It may still be a member that has no address for now. Consensus must not wait for a cancelled transfer.
      this.#options.transferred(to, false)
    }
  }

  /** Sends a consensus message. A snapshot goes in chunks; requests for it during the transfer are ignored. */
  send(message: Message): void {
    if (message.kind === 'snapshot') return this.#startTransfer(message)
    const bulk = message.kind === 'append' && message.entries.length > 0
    this.#sendFrame('consensus', message.to, bulk ? 'bulk' : 'control', (writer) => writeMessage(writer, message))
  }

  sendHash(to: NodeId, index: number, hash: string): void {
    this.#sendFrame('stateHash', to, 'control', (writer) => {
      writer.varuint(index)
      writer.string(hash)
    })
  }

  sendLevel(to: NodeId, level: number): void {
    this.#sendFrame('featureLevel', to, 'control', (writer) => writer.varuint(level))
  }

  tick(): void {
    for (const [to, sender] of this.#senders) if (sender.tick() === 'failed') this.#endTransfer(to, false)
    this.#receiver.tick()
    this.#rollbackGuard.tick()
    if (this.#options.settings.platform.clock.monotonicMs() >= this.#saveAt) this.save()
  }

  /** Cancels all transfers, because this member no longer leads. */
  stopTransfers(): void {
    for (const to of [...this.#senders.keys(), ...this.#requests.keys()]) this.#stopTransfer(to)
  }

  #stopTransfer(to: NodeId): void {
    this.#senders.delete(to)
    const request = this.#requests.get(to)
    this.#requests.delete(to)
    if (request) this.#options.exporter.cancel(request)
  }

  /** Acknowledges the snapshot that was passed to `install`. */
  installed(result: 'done' | 'failed'): void {
    const installing = this.#installing
    if (!installing) return
    this.#installing = undefined
    this.#sendAck(installing.from, this.#receiver.finish(installing.transfer, result))
  }

  #startTransfer(message: Message): void {
    const { to, term } = message
    if (this.#senders.has(to) || this.#requests.has(to)) return
    const send = (chunk: Chunk): void =>
      this.#sendFrame('snapshotChunk', to, 'bulk', (writer) => writeChunk(writer, chunk))
    const request: ExportRequest = {
      exported: ({ meta, ...content }) => {
        this.#requests.delete(to)
        const number = this.#options.settings.platform.random.below(2 ** 32)
        const whole = { ...content, meta: encodeMeta(meta) }
        this.#senders.set(to, new SnapshotSender(to, number, term, whole, send))
      },
    }
    this.#requests.set(to, request)
    this.#options.exporter.request(request)
  }

  #endTransfer(to: NodeId, done: boolean): void {
    this.#senders.delete(to)
    this.#options.transferred(to, done)
  }

  #receive(bytes: Uint8Array): void {
    const frame = this.#frames.decode(bytes)
    if ('refused' in frame) return this.#logRefused(frame.refused)
    const { kind, from, body } = frame
    try {
      if (kind === 'consensus') {
        const message = readMessage(body, from, this.#options.identity.node)
        const problem = this.#termGuard.problemOf(message, this.#options.raft.term)
        if (problem !== undefined) this.#logRefused(`${message.kind} of node ${from}: ${problem}`)
        else if (this.#rollbackGuard.admits(message)) this.#options.step(message)
      } else if (kind === 'statement') this.#rollbackGuard.receive(from, readStatement(body))
      else if (kind === 'snapshotChunk') this.#receiveChunk(from, readChunk(body))
      else if (kind === 'snapshotAck') {
        const outcome = this.#senders.get(from)?.acknowledge(readChunkAck(body))
        if (outcome) this.#endTransfer(from, outcome === 'done')
      } else if (kind === 'featureLevel') this.#options.level(from, body.varuint())
      else this.#options.hash(from, body.varuint(), body.string())
    } catch (error) {
      if (!(error instanceof CodecError)) throw error
      this.#logRefused(`${kind} of node ${from}: ${error.message}`)
    }
  }

  #receiveChunk(from: NodeId, chunk: Chunk): void {
    const { ack, received } = this.#receiver.receive(from, chunk, this.isInstalling)
    if (ack) this.#sendAck(from, ack)
    if (!received) return
    this.#installing = received
    this.#options.install(received)
  }

  #sendAck(to: NodeId, ack: ChunkAck): void {
    this.#sendFrame('snapshotAck', to, 'control', (writer) => writeChunkAck(writer, ack))
  }

  #sendFrame(kind: PeerKind, to: NodeId, lane: 'control' | 'bulk', write: (writer: Writer) => void): void {
    this.#options.settings.platform.network.send(to, lane, this.#frames.encode(kind, to, write))
  }

  #logRefused(why: string): void {
    const { log } = this.#options.settings.platform
    if (this.#refusedFrames++ % LOG_EVERY === 0) log.warn('rejected a frame', { why, rejected: this.#refusedFrames })
  }
}
