import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { StorageError } from '@leasehold/core'
import type { Deadline, FromSupervisor, ToSupervisor } from './supervisor-messages.js'

export type Ended = Extract<FromSupervisor, { kind: 'ended' | 'failed' }>

/** The handle of `run` on the command under its supervisor. */
export class Supervised {
  readonly #supervisor: ChildProcess
  #pid: number | undefined
  /** Resolves when the command and its process group have ended. */
  readonly ended: Promise<Ended>

  constructor(options: {
    readonly command: readonly string[]
    readonly env: NodeJS.ProcessEnv
    readonly deadline: () => Deadline
    readonly killAfterMs: number
  }) {
    const file = fileURLToPath(new URL('./supervisor.js', import.meta.url))
    this.#supervisor = spawn(process.execPath, [file], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      detached: true,
      env: options.env,
    })
    this.ended = new Promise((resolve, reject) => {
      let last: Ended | undefined
      this.#supervisor.on('message', (message) => {
        const received = message as FromSupervisor
        if (received.kind === 'ready') {
          const { command, killAfterMs } = options
          this.#send({ kind: 'start', command, killAfterMs, deadline: options.deadline() })
        } else if (received.kind === 'started') this.#pid = received.pid
        else last = received
      })
      this.#supervisor.once('error', (cause) => reject(new StorageError('cannot start the supervisor', { cause })))
      // 'close' and not 'exit': the last message may still be in the channel.
      this.#supervisor.once('close', () => resolve(last ?? this.#orphaned()))
    })
  }

  deadline(deadline: Deadline): void {
    this.#send({ kind: 'deadline', deadline })
  }

  lost(): void {
    this.#send({ kind: 'lost' })
  }

  signal(signal: NodeJS.Signals): void {
    this.#send({ kind: 'signal', signal })
  }

  /** The supervisor was killed: the command has no supervision, so its group is killed. */
  #orphaned(): Ended {
    if (this.#pid !== undefined) {
      try {
        process.kill(-this.#pid, 'SIGKILL')
      } catch {
        // The group has already ended.
      }
    }
    return { kind: 'ended', code: null, signal: 'SIGKILL', becauseLost: false }
  }

  #send(message: ToSupervisor): void {
    if (this.#supervisor.connected) this.#supervisor.send(message, () => {})
  }
}
