import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { StorageError } from '@leasehold/core'
import type { Deadline, FromSupervisor, ToSupervisor } from './supervisor-messages.js'

export type Ended = Extract<FromSupervisor, { kind: 'ended' | 'failed' }>

/** The command under its supervisor, as `run` sees it. */
export class Supervised {
  readonly #supervisor: ChildProcess
  #pid: number | undefined
  /** Resolves when the command and its process group are gone. */
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
        const said = message as FromSupervisor
        if (said.kind === 'ready') {
          const { command, killAfterMs } = options
          this.#tell({ kind: 'start', command, killAfterMs, deadline: options.deadline() })
        } else if (said.kind === 'started') this.#pid = said.pid
        else last = said
      })
      this.#supervisor.once('error', (cause) => reject(new StorageError('cannot start the supervisor', { cause })))
      // 'close' and not 'exit': the last message may still be in the channel.
      this.#supervisor.once('close', () => resolve(last ?? this.#orphaned()))
    })
  }

  deadline(deadline: Deadline): void {
    this.#tell({ kind: 'deadline', deadline })
  }

  lost(): void {
    this.#tell({ kind: 'lost' })
  }

  signal(signal: NodeJS.Signals): void {
    this.#tell({ kind: 'signal', signal })
  }

  /** Somebody has killed the supervisor: nothing watches the command any more, so it ends here. */
  #orphaned(): Ended {
    if (this.#pid !== undefined) {
      try {
        process.kill(-this.#pid, 'SIGKILL')
      } catch {
        // It had ended already.
      }
    }
    return { kind: 'ended', code: null, signal: 'SIGKILL', becauseLost: false }
  }

  #tell(message: ToSupervisor): void {
    if (this.#supervisor.connected) this.#supervisor.send(message, () => {})
  }
}
