import { type ChildProcess, spawn } from 'node:child_process'
import { ProcessGroup } from './process-group.js'
import { type Deadline, type FromSupervisor, remainingUntil, type ToSupervisor } from './supervisor-messages.js'

/*
 * The process between `leasehold run` and the command. It starts the command in its own process group, and ends the whole
 * group: with SIGTERM at deadline − kill-after and SIGKILL at the deadline, even while `run` is stopped or busy; at once
 * when the hold is lost; and when `run` itself has ended, which closes the channel.
 */

/** How long to wait for the kernel after SIGKILL. */
const GONE_LIMIT_MS = 2_000
/** Longest time between two checks of the deadline, so that a step of the wall clock is noticed. */
const CHECK_MS = 250

class Supervisor {
  #child: ChildProcess | undefined
  #group: ProcessGroup | undefined
  #deadline: Deadline = { monotonicMs: Number.POSITIVE_INFINITY, wallMs: Number.POSITIVE_INFINITY }
  #killAfterMs = 0
  #ending = false
  #becauseLost = false
  #timer: NodeJS.Timeout | undefined
  /** Signals that arrived before the command was started. */
  readonly #early: NodeJS.Signals[] = []

  handle(message: ToSupervisor): void {
    switch (message.kind) {
      case 'start':
        this.#killAfterMs = message.killAfterMs
        this.#deadline = message.deadline
        return this.#start(message.command)
      case 'deadline':
        if (!this.#ending) this.#deadline = message.deadline
        return this.#checkDeadline()
      case 'lost':
        this.#becauseLost = true
        return this.end()
      case 'signal':
        if (this.#group === undefined) this.#early.push(message.signal)
        else this.#group.send(message.signal)
    }
  }

  /** Ends the group, because `run` has ended or the hold is lost. */
  end(): void {
    if (this.#child === undefined) process.exit(0)
    this.#terminate()
    const soon = remainingUntil(this.#deadline)
    if (this.#killAfterMs < soon) {
      const shift = soon - this.#killAfterMs
      const { monotonicMs, wallMs } = this.#deadline
      this.#deadline = { monotonicMs: monotonicMs - shift, wallMs: wallMs - shift }
    }
    this.#checkDeadline()
  }

  #start([file, ...args]: readonly string[]): void {
    const child = spawn(file as string, args, { stdio: 'inherit', detached: true, env: process.env })
    this.#child = child
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid !== undefined) return
      send({ kind: 'failed', code: error.code ?? '', message: error.message })
      exit()
    })
    child.once('exit', (code, signal) => void this.#finish(code, signal))
    if (child.pid === undefined) return
    this.#group = new ProcessGroup(child.pid)
    send({ kind: 'started', pid: child.pid })
    for (const signal of this.#early) this.#group.send(signal)
    this.#checkDeadline()
  }

  /** Ends the group if the deadline requires it, and schedules the next check. */
  #checkDeadline(): void {
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
      this.#timer = setTimeout(() => this.#checkDeadline(), Math.max(1, Math.min(next, CHECK_MS)))
    }
  }

  #terminate(): void {
    this.#ending = true
    this.#group?.send('SIGTERM')
    // A stopped process gets the signal only once it continues.
    this.#group?.send('SIGCONT')
  }

  /** Ends the processes that the command has left in its group, before the lock is released. */
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
    send({ kind: 'ended', code, signal, becauseLost: this.#becauseLost })
    exit()
  }
}

function send(message: FromSupervisor): void {
  if (process.connected) process.send?.(message)
}

/** Exits once the last message is sent. */
function exit(): void {
  process.removeAllListeners('disconnect')
  if (process.connected) process.disconnect()
  setImmediate(() => process.exit(0))
}

const supervisor = new Supervisor()
process.on('message', (message) => supervisor.handle(message as ToSupervisor))
process.on('disconnect', () => supervisor.end())
// Signals reach the command through `run`; this process ends with the group only.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => {})
send({ kind: 'ready' })
