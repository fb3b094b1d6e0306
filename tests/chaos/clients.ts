import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeCommand } from './member.js'
import type { ClientSettings } from './work/client.js'
import { readJournals } from './work/journal.js'

const PROGRAM = fileURLToPath(new URL('./work/client.ts', import.meta.url))
const TSX = import.meta.resolve('tsx')
const END_LIMIT_MS = 30_000

/** How much longer a run continues when its clients have done less than they should by then. */
export const PATIENCE_MS = 150_000

interface ClientProcess {
  readonly name: string
  readonly journal: string
  readonly child: ChildProcess
  readonly exited: Promise<void>
  hasEnded: boolean
  endingOnPurpose: boolean
}

/** The client processes of a run. One that is killed is followed by another with a journal of its own. */
export class ClientProcesses {
  readonly #all: ClientProcess[] = []
  #begun = 0

  readonly #folder: string
  readonly #url: string
  readonly #seed: number
  readonly #onUnexpectedEnd: (name: string, code: number | null, signal: string | null) => void

  constructor(
    folder: string,
    url: string,
    seed: number,
    onUnexpectedEnd: (name: string, code: number | null, signal: string | null) => void,
  ) {
    this.#folder = folder
    this.#url = url
    this.#seed = seed
    this.#onUnexpectedEnd = onUnexpectedEnd
  }

  get resourceFile(): string {
    return join(this.#folder, 'resource.sqlite')
  }

  start(): void {
    const name = `c${++this.#begun}`
    const journal = join(this.#folder, `${name}.journal`)
    const settings: ClientSettings = {
      name,
      url: this.#url,
      journal,
      resource: this.resourceFile,
      seed: this.#seed * 1_000 + this.#begun,
    }
    const log = openSync(join(this.#folder, `${name}.log`), 'a')
    const [command, args] = nodeCommand(['--import', TSX, PROGRAM, JSON.stringify(settings)])
    const child = spawn(command, args, { stdio: ['pipe', log, log] })
    closeSync(log)
    closeSync(openSync(journal, 'a'))
    const one: ClientProcess = {
      name,
      journal,
      child,
      hasEnded: false,
      endingOnPurpose: false,
      exited: new Promise((resolve) => {
        child.once('exit', (code, signal) => {
          one.hasEnded = true
          if (!one.endingOnPurpose) this.#onUnexpectedEnd(name, code, signal)
          resolve()
        })
      }),
    }
    this.#all.push(one)
  }

  get #alive(): ClientProcess[] {
    return this.#all.filter(({ hasEnded }) => !hasEnded)
  }

  /** Names of those that run now. */
  get alive(): string[] {
    return this.#alive.map(({ name }) => name)
  }

  /** Their journals, also of those that are gone. */
  get journals(): { process: string; file: string }[] {
    return this.#all.map(({ name, journal }) => ({ process: name, file: journal }))
  }

  /** How many operations all of them have begun so far. */
  get operations(): number {
    return [...readJournals(this.journals).operations.values()].reduce((sum, { length }) => sum + length, 0)
  }

  pauseAll(): void {
    for (const { child } of this.#alive) child.kill('SIGSTOP')
  }

  resumeAll(): void {
    for (const { child } of this.#alive) child.kill('SIGCONT')
  }

  /** kill -9 of the one that has run longest, and another in its place. */
  async killOne(): Promise<void> {
    const [one] = this.#alive
    if (one === undefined) return
    one.endingOnPurpose = true
    one.child.kill('SIGKILL')
    await one.exited
    this.start()
  }

  /** Lets all finish their operations and release their holds. @returns the names of those that had to be killed */
  async end(): Promise<string[]> {
    const late: string[] = []
    await Promise.all(
      this.#alive.map(async (one) => {
        one.endingOnPurpose = true
        one.child.kill('SIGCONT')
        one.child.kill('SIGTERM')
        const timer = setTimeout(() => {
          late.push(one.name)
          one.child.kill('SIGKILL')
        }, END_LIMIT_MS)
        await one.exited
        clearTimeout(timer)
      }),
    )
    return late
  }

  async kill(): Promise<void> {
    for (const one of this.#alive) {
      one.endingOnPurpose = true
      one.child.kill('SIGKILL')
      await one.exited
    }
  }
}
