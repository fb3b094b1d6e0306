import type { SessionId } from '@leasehold/core'
import type { AppliedBatch, Member } from '../member.js'
import {
  STREAM_LIMITS,
  type StreamHubOptions,
  type StreamLimits,
  type StreamPeer,
  type StreamViews,
} from './stream-options.js'
import { ServiceStream, type StreamOwner } from './service-stream.js'

/**
 * All streams of one member: binds sessions to streams, routes pushes and events, and flushes the messages of a burst of
 * entries together. Independent of the transport: the server connects WebSockets, the embedded engine a pair of callbacks.
 *
 * @example
 * const stream = hub.open({ emit: (messages) => socket.send(encodeServerMessages(messages)), end: () => socket.close() })
 * socket.onmessage = (frame) => stream.receive(decodeClientMessages(frame))
 * socket.onclose = () => stream.close()
 */
export class StreamHub<State> implements StreamOwner<State> {
  readonly member: Member<State>
  readonly views: StreamViews<State>
  readonly local: boolean
  readonly limits: StreamLimits
  readonly urls: () => readonly string[]
  readonly #streams = new Set<ServiceStream<State>>()
  readonly #bySession = new Map<SessionId, ServiceStream<State>>()
  readonly #watching = new Set<ServiceStream<State>>()
  /** Streams to flush at the end of the burst, without duplicates. */
  #dirty: ServiceStream<State>[] = []
  readonly #off: (() => void)[]
  #inBurst = false
  #lastIndex: number

  constructor(options: StreamHubOptions<State>) {
    this.member = options.member
    this.views = options.views
    this.local = options.local ?? false
    this.urls = options.urls ?? (() => [])
    this.limits = { ...STREAM_LIMITS, ...options.limits }
    this.#lastIndex = this.member.stale().index
    this.#off = [this.member.onApplied((batch) => this.#applied(batch)), this.member.onIdle(() => this.#idle())]
  }

  /** Number of open streams. */
  get size(): number {
    return this.#streams.size
  }

  /** Opens a stream for a new connection. Nothing is sent before the client's `hello`. */
  open(peer: StreamPeer): ServiceStream<State> {
    const stream = new ServiceStream(this, peer)
    this.#streams.add(stream)
    return stream
  }

  /** Closes all streams. The caller closes their transports. */
  stop(): void {
    for (const off of this.#off.splice(0)) off()
    for (const stream of [...this.#streams]) stream.close()
  }

  // --- For the streams ---

  /** Binds a session to the last connection that presented its secret. */
  bound(session: SessionId, stream: ServiceStream<State>): void {
    const before = this.#bySession.get(session)
    if (before !== stream) before?.unbind(session)
    this.#bySession.set(session, stream)
  }

  watchingChanged(stream: ServiceStream<State>): void {
    if (stream.watching) this.#watching.add(stream)
    else this.#watching.delete(stream)
  }

  /** Flushes a stream: at the end of the current burst of entries, or immediately outside one. */
  dirty(stream: ServiceStream<State>): void {
    if (!this.#inBurst) return stream.flush()
    if (!stream.marked) this.#dirty.push(stream)
    stream.marked = true
  }

  closed(stream: ServiceStream<State>): void {
    this.#streams.delete(stream)
    this.#watching.delete(stream)
    for (const session of stream.sessions) {
      if (this.#bySession.get(session) === stream) this.#bySession.delete(session)
    }
  }

  #applied({ index, pushes, events }: AppliedBatch): void {
    this.#inBurst = true
    const skipped = index !== this.#lastIndex + 1
    this.#lastIndex = index
    for (const push of pushes) {
      this.#bySession.get(push.session)?.pushed(push)
      if (push.ended) this.#bySession.delete(push.session)
    }
    if (skipped) for (const stream of [...this.#watching]) stream.gap()
    if (events.length > 0) for (const stream of this.#watching) stream.applied(index, events)
  }

  #idle(): void {
    this.#inBurst = false
    const dirty = this.#dirty
    if (dirty.length === 0) return
    this.#dirty = []
    for (const stream of dirty) {
      stream.marked = false
      stream.flush()
    }
  }
}
