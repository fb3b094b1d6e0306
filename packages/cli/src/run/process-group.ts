import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 20

/** A process group that was started with a session of its own: its leader's pid is its id. */
export class ProcessGroup {
  constructor(readonly leader: number) {}

  /** Sends a signal to every member; `false` when there is none left. */
  send(signal: NodeJS.Signals | 0): boolean {
    try {
      process.kill(-this.leader, signal)
      return true
    } catch (error) {
      // EPERM: somebody is there, only not ours to signal.
      return (error as NodeJS.ErrnoException).code === 'EPERM'
    }
  }

  /** Waits until no member is left, at most `limitMs`. */
  async gone(limitMs: number): Promise<boolean> {
    const end = performance.now() + limitMs
    while (this.send(0)) {
      if (performance.now() >= end) return false
      await sleep(POLL_MS)
    }
    return true
  }
}
