/** Frames that wait for a decision; consensus repeats what does not fit. */
const HELD_BYTES_MAX = 1024 * 1024

/** Holds back what a connection delivers while it is being decided whether its sender may speak. */
export class FrameGate {
  private held: Uint8Array[] | undefined
  private bytes = 0

  constructor(private readonly deliver: (frame: Uint8Array) => void) {}

  pass(frame: Uint8Array): void {
    if (this.held === undefined) return this.deliver(frame)
    if (this.bytes + frame.length > HELD_BYTES_MAX) return
    this.bytes += frame.length
    this.held.push(frame)
  }

  close(): void {
    this.held ??= []
  }

  open(): void {
    const { held = [] } = this
    this.held = undefined
    this.bytes = 0
    for (const frame of held) this.deliver(frame)
  }
}
