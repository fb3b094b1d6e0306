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
 * All streams of one member: knows which session is bound to which stream, hands out pushes and events, and lets what a
 * burst of entries has caused leave together. Knows no transport: the server gives it WebSockets, the embedded engine a
 * pair of callbacks.
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
  /** To be flushed at the end of the burst; each once. */
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

  /** Streams that are open. */
  get size(): number {
    return this.#streams.size
  }

  /** A new connection. Nothing is sent before its `hello`. */
  open(peer: StreamPeer): ServiceStream<State> {
    const stream = new ServiceStream(this, peer)
    this.#streams.add(stream)
    return stream
  }

  /** Forgets all streams; their transports are the caller's. */
  stop(): void {
    for (const off of this.#off.splice(0)) off()
    for (const stream of [...this.#streams]) stream.close()
  }

  // --- For the streams ---

  /** The last connection that showed the session's secret has it. */
  bound(session: SessionId, stream: ServiceStream<State>): void {
    const before = this.#bySession.get(session)
    if (before !== stream) before?.unbind(session)
    this.#bySession.set(session, stream)
  }

  watchingChanged(stream: ServiceStream<State>): void {
    if (stream.watching) this.#watching.add(stream)
    else this.#watching.delete(stream)
  }

  /** The stream has something to send: at the end of the burst of entries, or at once outside one. */
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
