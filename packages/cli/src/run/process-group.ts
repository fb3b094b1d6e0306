import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 20

/** A process group with its own session. Its id is the pid of its leader. */
export class ProcessGroup {
  constructor(readonly leader: number) {}

  /** Sends a signal to every process of the group; returns `false` if none is left. */
  send(signal: NodeJS.Signals | 0): boolean {
    try {
      process.kill(-this.leader, signal)
      return true
    } catch (error) {
      // EPERM: a process exists, which this one may not signal.
      return (error as NodeJS.ErrnoException).code === 'EPERM'
    }
  }

  /** Waits until no process is left, at most `limitMs`. Returns whether that is so. */
  async gone(limitMs: number): Promise<boolean> {
    const end = performance.now() + limitMs
    while (this.send(0)) {
      if (performance.now() >= end) return false
      await sleep(POLL_MS)
    }
    return true
  }
}
