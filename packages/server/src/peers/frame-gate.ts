/** Limit of buffered bytes; further frames are dropped, because consensus resends them. */
const BUFFERED_BYTES_MAX = 1024 * 1024

/** Buffers the frames of a connection while its sender is being verified. */
export class FrameGate {
  readonly #deliver: (frame: Uint8Array) => void
  #buffered: Uint8Array[] | undefined
  #bytes = 0

  constructor(deliver: (frame: Uint8Array) => void) {
    this.#deliver = deliver
  }

  /** Delivers the frame, or buffers it while the gate is closed. */
  pass(frame: Uint8Array): void {
    if (this.#buffered === undefined) return this.#deliver(frame)
    if (this.#bytes + frame.length > BUFFERED_BYTES_MAX) return
    this.#bytes += frame.length
    this.#buffered.push(frame)
  }

  close(): void {
    this.#buffered ??= []
  }

  /** Delivers the buffered frames and all further ones. */
  open(): void {
    const frames = this.#buffered ?? []
    this.#buffered = undefined
    this.#bytes = 0
    for (const frame of frames) this.#deliver(frame)
  }
}
