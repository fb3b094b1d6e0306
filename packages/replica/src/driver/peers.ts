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
import {
  type Chunk,
  type ChunkAck,
  readChunk,
  readChunkAck,
  type Received,
  SnapshotReceiver,
  SnapshotSender,
  writeChunk,
  writeChunkAck,
} from '../snapshots/snapshot-transfer.js'
import type { StateWish, StateWriter } from '../snapshots/state-exporter.js'

/** A refused frame is logged at most once in so many. */
const LOG_EVERY = 1000
/** What members have acknowledged is written down this often. */
const SAVE_EVERY_MS = 10_000

export interface PeersOptions {
  readonly settings: ReplicaSettings
  readonly identity: Identity
  readonly raft: Raft
  /** A message of consensus has arrived. */
  readonly step: (message: Message) => void
  /** Writes down what a peer that is too far behind for the log is sent. */
  readonly writer: StateWriter
  /** The process of another member is known to have ended. */
  readonly ended: (node: NodeId) => void
  /** How a transfer to a peer ended. */
  readonly transferred: (to: NodeId, done: boolean) => void
  /** A snapshot has arrived whole; {@link Peers.installed} answers it. */
  readonly install: (received: Received) => void
  /** Another member says what its state's hash is after an entry. */
  readonly hash: (from: NodeId, index: number, hash: string) => void
  /** Another member says which feature level it knows. */
  readonly level: (from: NodeId, level: number) => void
  /** Runs what a frame brings about; what it throws stops the member. */
  readonly guard: (action: () => void) => void
}

/** The talk with the other members: frames, lanes, and the transfer of snapshots. */
export class Peers {
  private readonly frames: PeerFrames
  private readonly senders = new Map<NodeId, SnapshotSender>()
  /** Peers whose snapshot is being written down. */
  private readonly wishes = new Map<NodeId, StateWish>()
  private readonly receiver = new SnapshotReceiver()
  readonly memory = new AcknowledgedMemory()
  private readonly file: AcknowledgedFile
  private readonly rollbackGuard: RollbackGuard
  private saveAt: number
  private installing: Received | undefined
  private refused = 0

  constructor(private readonly options: PeersOptions) {
    const { settings, identity, raft, guard } = options
    const { disk, random, log, network, clock } = settings.platform
    const { memory } = this
    this.frames = new PeerFrames(identity.cluster, identity.node)
    this.file = new AcknowledgedFile({ disk, identity, memory, log, guard })
    this.saveAt = clock.monotonicMs() + SAVE_EVERY_MS
    this.rollbackGuard = new RollbackGuard({
      ...{ raft, identity, random, log, memory },
      electionTicks: settings.electionTicks,
      send: (to, statement) => this.put('statement', to, 'control', (writer) => writeStatement(writer, statement)),
    })
    network.receive((_from, bytes) => guard(() => this.receive(bytes)))
    network.onEnded?.((node) => guard(() => options.ended(node)))
  }

  /** A file is being written. */
  get isSaving(): boolean {
    return this.file.isSaving
  }

  /** Writes down what members have acknowledged. */
  save(): void {
    const { clock } = this.options.settings.platform
    this.saveAt = clock.monotonicMs() + SAVE_EVERY_MS
    this.file.save()
  }

  /** Writes nothing any more. */
  close(): void {
    this.file.close()
  }

  /** A snapshot is being taken in; another one has to wait. */
  get isInstalling(): boolean {
    return this.installing !== undefined
  }

  setMembers(members: readonly MemberInfo[]): void {
    const { identity, settings } = this.options
    this.rollbackGuard.setMembers(members)
    const others = members.filter((member) => member.node !== identity.node && member.peer !== '')
    settings.platform.network.setPeers(new Map(others.map((member) => [member.node, member.peer])))
    for (const to of [...this.senders.keys(), ...this.wishes.keys()]) {
      if (others.some((member) => member.node === to)) continue
      this.stopTransfer(to)
      // It may still be a member, without an address for now: consensus must not wait for a transfer that is gone.
      this.options.transferred(to, false)
    }
  }

  /** Sends a message of consensus. A snapshot is sent in chunks; meanwhile further wishes for it change nothing. */
  send(message: Message): void {
    if (message.kind === 'snapshot') return this.transfer(message)
    const bulk = message.kind === 'append' && message.entries.length > 0
    this.put('consensus', message.to, bulk ? 'bulk' : 'control', (writer) => writeMessage(writer, message))
  }

  sendHash(to: NodeId, index: number, hash: string): void {
    this.put('stateHash', to, 'control', (writer) => {
      writer.varuint(index)
      writer.string(hash)
    })
  }

  sendLevel(to: NodeId, level: number): void {
    this.put('featureLevel', to, 'control', (writer) => writer.varuint(level))
  }

  tick(): void {
    for (const [to, sender] of this.senders) if (sender.tick() === 'failed') this.end(to, false)
    this.receiver.tick()
    this.rollbackGuard.tick()
    if (this.options.settings.platform.clock.monotonicMs() >= this.saveAt) this.save()
  }

  /** This member no longer leads: nobody waits for its snapshots any more. */
  stopTransfers(): void {
    for (const to of [...this.senders.keys(), ...this.wishes.keys()]) this.stopTransfer(to)
  }

  private stopTransfer(to: NodeId): void {
    this.senders.delete(to)
    const wish = this.wishes.get(to)
    this.wishes.delete(to)
    if (wish) this.options.writer.drop(wish)
  }

  /** Answers the snapshot that `install` was called with. */
  installed(result: 'done' | 'failed'): void {
    const { installing } = this
    if (!installing) return
    this.installing = undefined
    this.ack(installing.from, this.receiver.finish(installing.transfer, result))
  }

  private transfer(message: Message): void {
    const { to, term } = message
    if (this.senders.has(to) || this.wishes.has(to)) return
    const send = (chunk: Chunk): void => this.put('snapshotChunk', to, 'bulk', (writer) => writeChunk(writer, chunk))
    const wish: StateWish = {
      written: ({ meta, ...content }) => {
        this.wishes.delete(to)
        const number = this.options.settings.platform.random.below(2 ** 32)
        const whole = { ...content, meta: encodeMeta(meta) }
        this.senders.set(to, new SnapshotSender(to, number, term, whole, send))
      },
    }
    this.wishes.set(to, wish)
    this.options.writer.want(wish)
  }

  private end(to: NodeId, done: boolean): void {
    this.senders.delete(to)
    this.options.transferred(to, done)
  }

  private receive(bytes: Uint8Array): void {
    const frame = this.frames.decode(bytes)
    if ('refused' in frame) return this.refuse(frame.refused)
    const { kind, from, body } = frame
    try {
      if (kind === 'consensus') {
        const message = readMessage(body, from, this.options.identity.node)
        if (this.rollbackGuard.admits(message)) this.options.step(message)
      } else if (kind === 'statement') this.rollbackGuard.receive(from, readStatement(body))
      else if (kind === 'snapshotChunk') this.chunk(from, readChunk(body))
      else if (kind === 'snapshotAck') {
        const outcome = this.senders.get(from)?.acked(readChunkAck(body))
        if (outcome) this.end(from, outcome === 'done')
      } else if (kind === 'featureLevel') this.options.level(from, body.varuint())
      else this.options.hash(from, body.varuint(), body.string())
    } catch (error) {
      if (!(error instanceof CodecError)) throw error
      this.refuse(`${kind} of node ${from}: ${error.message}`)
    }
  }

  private chunk(from: NodeId, chunk: Chunk): void {
    const { ack, received } = this.receiver.receive(from, chunk, this.isInstalling)
    if (ack) this.ack(from, ack)
    if (!received) return
    this.installing = received
    this.options.install(received)
  }

  private ack(to: NodeId, ack: ChunkAck): void {
    this.put('snapshotAck', to, 'control', (writer) => writeChunkAck(writer, ack))
  }

  private put(kind: PeerKind, to: NodeId, lane: 'control' | 'bulk', write: (writer: Writer) => void): void {
    this.options.settings.platform.network.send(to, lane, this.frames.encode(kind, to, write))
  }

  private refuse(why: string): void {
    const { log } = this.options.settings.platform
    if (this.refused++ % LOG_EVERY === 0) log.warn('a frame was refused', { why, refused: this.refused })
  }
}
