import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { PIPELINED_MAX, REQUESTS_IN_WORK_MAX, UNSENT_BYTES_MAX } from '../limits.js'

type Handler = (incoming: IncomingMessage, outgoing: ServerResponse) => void

interface Pipeline {
  /** Responses that were started and are not completely sent. */
  readonly inWork: Set<ServerResponse>
  /** Requests that were parsed and not started; the socket is paused while there is one. */
  readonly queue: (readonly [IncomingMessage, ServerResponse])[]
}

/**
 * Limits the requests in work per connection, so that a client that pipelines requests and does not read the responses
 * cannot fill the memory. Requests beyond the limit are queued and the socket is paused until they are started.
 *
 * The parser reports all requests of one chunk of 64 KiB, even from a paused socket. A connection with more queued requests
 * than the limit is closed.
 */
export class RequestPipelines {
  readonly #handle: Handler
  readonly #pipelines = new WeakMap<Socket, Pipeline>()

  constructor(handle: Handler) {
    this.#handle = handle
  }

  /** Number of requests in work or queued on a connection. */
  size(socket: Socket): number {
    const pipeline = this.#pipelines.get(socket)
    return pipeline === undefined ? 0 : pipeline.inWork.size + pipeline.queue.length
  }

  /** Starts the request now, or when the earlier ones of its connection are answered. */
  add(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming
    if (socket.destroyed) return
    const pipeline = this.#pipelines.get(socket) ?? this.#open(socket)
    if (mayStart(socket, pipeline)) return this.#start(socket, pipeline, incoming, outgoing)
    if (pipeline.queue.length >= PIPELINED_MAX) {
      socket.destroy()
      return
    }
    pipeline.queue.push([incoming, outgoing])
    // The queue has every request that is not in work, so the body of a request in work has already arrived.
    stopReading(socket)
  }

  #open(socket: Socket): Pipeline {
    const pipeline: Pipeline = { inWork: new Set(), queue: [] }
    this.#pipelines.set(socket, pipeline)
    // Node's server resumes the socket when it reads a body, and after a drain.
    socket.on('resume', () => {
      if (pipeline.queue.length > 0) stopReading(socket)
    })
    socket.once('close', () => {
      pipeline.queue.length = 0
      // Node reports the end of the connection only to the first response. The handlers of the others must stop too.
      setImmediate(() => {
        for (const outgoing of pipeline.inWork) {
          outgoing.destroy()
          outgoing.emit('close')
        }
      })
    })
    return pipeline
  }

  #start(socket: Socket, pipeline: Pipeline, incoming: IncomingMessage, outgoing: ServerResponse): void {
    pipeline.inWork.add(outgoing)
    // 'close' follows 'finish', which Node emits when the response has left the process, and a lost connection.
    outgoing.once('close', () => {
      pipeline.inWork.delete(outgoing)
      this.#startQueued(socket, pipeline)
    })
    this.#handle(incoming, outgoing)
  }

  #startQueued(socket: Socket, pipeline: Pipeline): void {
    if (pipeline.queue.length === 0 || socket.destroyed) return
    while (mayStart(socket, pipeline)) {
      const next = pipeline.queue.shift()
      if (next === undefined) break
      this.#start(socket, pipeline, ...next)
    }
    if (pipeline.queue.length === 0) socket.resume()
  }
}

/** Node's server stops to read at the event `pause`, which a socket that is paused already does not emit again. */
function stopReading(socket: Socket): void {
  if (socket.isPaused()) socket.emit('pause')
  else socket.pause()
}

/** Whether the connection may have one more request in work: one response is always sent, so the next `close` comes. */
function mayStart(socket: Socket, { inWork }: Pipeline): boolean {
  return inWork.size === 0 || (inWork.size < REQUESTS_IN_WORK_MAX && socket.writableLength < UNSENT_BYTES_MAX)
}
