import type { ClientPlatform } from '@leasehold/client'
import type { CallError, GrpcStream, StreamEvents } from './grpc.js'
import { METHODS, type WatchEventMessage, type WatchResponse } from './messages.js'
import { decode, encode } from './protobuf.js'

export interface WatchTarget {
  readonly key: Uint8Array
  readonly rangeEnd?: Uint8Array
  /** The first revision of the watch. */
  readonly from: number
  /** Skips puts. */
  readonly noPut?: boolean
  /** Skips deletions. */
  readonly noDelete?: boolean
  readonly prevKv?: boolean
}

export interface WatchListener {
  /** Events of one answer, in order; a revision is never split. */
  events(events: readonly WatchEventMessage[], revision: number): void
  /** The watch has ended: etcd has compacted its events up to this revision. */
  gap(compactRevision: number): void
}

interface Watch {
  readonly target: WatchTarget
  readonly listener: WatchListener
  next: number
}

const PAUSE_MIN_MS = 20
const PAUSE_MAX_MS = 1_000

export interface WatchStreamOptions {
  readonly platform: ClientPlatform
  readonly open: (events: StreamEvents) => Promise<GrpcStream>
  readonly failed: (error: Error) => void
}

/** All watches of a client on one stream; when it breaks, a new one continues after the last event. */
export class WatchStream {
  readonly #options: WatchStreamOptions
  readonly #watches = new Map<number, Watch>()
  #id = 0
  #stream: GrpcStream | undefined
  #opening = false
  #closed = false
  #pauseMs = PAUSE_MIN_MS

  constructor(options: WatchStreamOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#watches.size
  }

  /** Returns a function that ends the watch. */
  add(target: WatchTarget, listener: WatchListener): () => void {
    const id = ++this.#id
    this.#watches.set(id, { target, listener, next: target.from })
    if (this.#stream) this.#create(id)
    else this.#open()
    return () => {
      if (!this.#watches.delete(id)) return
      this.#stream?.send(encode(METHODS.watch.request, { cancel: { watchId: id } }))
    }
  }

  /**
   * etcd is at `revision`, by its majority: watches that wait for later ones would miss the events until then. It was
   * restored.
   */
  onRevisionRegressed(revision: number): void {
    for (const [id, watch] of [...this.#watches]) {
      if (watch.next <= revision + 1 || !this.#watches.delete(id)) continue
      this.#stream?.send(encode(METHODS.watch.request, { cancel: { watchId: id } }))
      watch.listener.gap(revision)
    }
  }

  close(): void {
    this.#closed = true
    this.#watches.clear()
    this.#stream?.cancel()
    this.#stream = undefined
  }

  /** One stream at a time; after it has ended, the next one follows after a pause. */
  #open(): void {
    if (this.#opening || this.#stream || this.#closed || this.#watches.size === 0) return
    this.#opening = true
    let isOver = false
    const failed = (error: Error): void => {
      isOver = true
      this.#opening = true
      this.#stream = undefined
      if (this.#closed) return
      this.#options.failed(error)
      const pauseMs = this.#pauseMs
      this.#pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)
      this.#options.platform.after(pauseMs, () => {
        this.#opening = false
        this.#open()
      })
    }
    this.#options
      .open({ message: (body) => this.#received(body), ended: (error: CallError) => failed(error) })
      .then((stream) => {
        // It may have ended before its first use.
        if (isOver) return
        this.#opening = false
        if (this.#closed) return stream.cancel()
        this.#stream = stream
        for (const id of this.#watches.keys()) this.#create(id)
      }, failed)
  }

  #create(id: number): void {
    const watch = this.#watches.get(id) as Watch
    const { key, rangeEnd, noPut, noDelete, prevKv } = watch.target
    const filters = [...(noPut ? [0] : []), ...(noDelete ? [1] : [])]
    const create = { key, rangeEnd, startRevision: watch.next, filters, prevKv, watchId: id }
    this.#stream?.send(encode(METHODS.watch.request, { create }))
  }

  #received(body: Buffer): void {
    const answer = decode<WatchResponse>(METHODS.watch.answer, body)
    this.#pauseMs = PAUSE_MIN_MS
    const watch = this.#watches.get(answer.watchId)
    if (watch === undefined) return
    if (answer.canceled) {
      this.#watches.delete(answer.watchId)
      return watch.listener.gap(answer.compactRevision)
    }
    if (answer.events.length === 0) return
    const last = answer.events.at(-1) as WatchEventMessage
    watch.next = last.kv.modRevision + 1
    watch.listener.events(answer.events, answer.header.revision)
  }
}
