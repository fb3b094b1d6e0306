import { type ChildProcess, spawn } from 'node:child_process'
import { ProcessGroup } from './process-group.js'
import { type Deadline, type FromSupervisor, remainingUntil, type ToSupervisor } from './supervisor-messages.js'

/*
 * The small process between `leasehold run` and the command. It starts the command in a process group of its own, and
 * ends that whole group: with SIGTERM at deadline − kill-after and SIGKILL at the deadline, also while `run` is stopped
 * or busy; at once when the hold is lost; and when `run` itself has gone, which shows as the end of the channel.
 */

/** After SIGKILL: how long to wait for the kernel. */
const GONE_LIMIT_MS = 2_000
/** Longest sleep of a timer, so that a step of the wall clock is seen soon. */
const LOOK_MS = 250

class Supervisor {
  #child: ChildProcess | undefined
  #group: ProcessGroup | undefined
  #deadline: Deadline = { monotonicMs: Number.POSITIVE_INFINITY, wallMs: Number.POSITIVE_INFINITY }
  #killAfterMs = 0
  #ending = false
  #becauseLost = false
  #timer: NodeJS.Timeout | undefined
  /** Signals from before the command was there. */
  readonly #early: NodeJS.Signals[] = []

  handle(message: ToSupervisor): void {
    switch (message.kind) {
      case 'start':
        this.#killAfterMs = message.killAfterMs
        this.#deadline = message.deadline
        return this.#start(message.command)
      case 'deadline':
        if (!this.#ending) this.#deadline = message.deadline
        return this.#look()
      case 'lost':
        this.#becauseLost = true
        return this.end()
      case 'signal':
        if (this.#group === undefined) this.#early.push(message.signal)
        else this.#group.send(message.signal)
    }
  }

  /** `run` is gone, or the hold is: the group must be, too. */
  end(): void {
    if (this.#child === undefined) process.exit(0)
    this.#terminate()
    const soon = remainingUntil(this.#deadline)
    if (this.#killAfterMs < soon) {
      const shift = soon - this.#killAfterMs
      const { monotonicMs, wallMs } = this.#deadline
      this.#deadline = { monotonicMs: monotonicMs - shift, wallMs: wallMs - shift }
    }
    this.#look()
  }

  #start([file, ...args]: readonly string[]): void {
    const child = spawn(file as string, args, { stdio: 'inherit', detached: true, env: process.env })
    this.#child = child
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid !== undefined) return
      tell({ kind: 'failed', code: error.code ?? '', message: error.message })
      leave()
    })
    child.once('exit', (code, signal) => void this.#finish(code, signal))
    if (child.pid === undefined) return
    this.#group = new ProcessGroup(child.pid)
    tell({ kind: 'started', pid: child.pid })
    for (const signal of this.#early) this.#group.send(signal)
    this.#look()
  }

  /** Acts if it is time, and looks again when it may be. */
  #look(): void {
    clearTimeout(this.#timer)
    if (this.#group === undefined) return
    const remaining = remainingUntil(this.#deadline)
    if (remaining <= this.#killAfterMs && !this.#ending) {
      this.#becauseLost = true
      this.#terminate()
    }
    if (remaining <= 0) this.#group.send('SIGKILL')
    else {
      const next = this.#ending ? remaining : remaining - this.#killAfterMs
      this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.min(next, LOOK_MS)))
    }
  }

  #terminate(): void {
    this.#ending = true
    this.#group?.send('SIGTERM')
    // A stopped process would keep the signal until it is continued.
    this.#group?.send('SIGCONT')
  }

  /** The command has ended: what it left behind in its group goes too, before the lock may pass on. */
  async #finish(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    const group = this.#group
    if (group?.send(0)) {
      group.send('SIGTERM')
      group.send('SIGCONT')
      const patience = Math.max(0, Math.min(this.#killAfterMs, remainingUntil(this.#deadline)))
      if (!(await group.gone(patience))) {
        group.send('SIGKILL')
        await group.gone(GONE_LIMIT_MS)
      }
    }
    clearTimeout(this.#timer)
    tell({ kind: 'ended', code, signal, becauseLost: this.#becauseLost })
    leave()
  }
}

function tell(message: FromSupervisor): void {
  if (process.connected) process.send?.(message)
}

/** Ends once the last message is out. */
function leave(): void {
  process.removeAllListeners('disconnect')
  if (process.connected) process.disconnect()
  setImmediate(() => process.exit(0))
}

const supervisor = new Supervisor()
process.on('message', (message) => supervisor.handle(message as ToSupervisor))
process.on('disconnect', () => supervisor.end())
// Signals reach the command through `run`; this process only ends with the group.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => {})
tell({ kind: 'ready' })
