import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { AcquireTimeoutError, UnavailableError } from '@leasehold/core'
import type { Report, WorkerTask } from './model.js'

const BIN = fileURLToPath(new URL('../bin.js', import.meta.url))
const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url))
const STOP_LIMIT_MS = 3_000
/** Makes the tokens of the guarded half 33 and 34, as in the figure of Kleppmann's article. */
const TOKEN_START = 24

/** The child processes of the demo. */
export class Children {
  readonly #running = new Set<ChildProcess>()

  spawn(args: readonly string[]): ChildProcess {
    const env: NodeJS.ProcessEnv = { ...process.env }
    for (const name of Object.keys(env)) if (name.startsWith('LEASEHOLD_')) delete env[name]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env })
    this.#running.add(child)
    child.once('exit', () => this.#running.delete(child))
    return child
  }

  /** Kills all children, even stopped ones. */
  killAll(): void {
    for (const child of this.#running) child.kill('SIGKILL')
  }
}

/** The JSON lines of a child's stdout. */
class Lines<T> {
  readonly #seen: T[] = []
  readonly #listeners = new Set<(line: T | undefined) => void>()
  #isClosed = false

  constructor(child: ChildProcess, onLine: (line: T) => void) {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (text) => {
      const line = JSON.parse(text) as T
      onLine(line)
      this.#seen.push(line)
      for (const listener of [...this.#listeners]) listener(line)
    })
    child.once('close', () => {
      this.#isClosed = true
      for (const listener of [...this.#listeners]) listener(undefined)
    })
  }

  /** Waits for the first line that `matches`, at most `limitMs`. Lines of the past count. */
  find(matches: (line: T) => boolean, what: string, limitMs: number): Promise<T> {
    const old = this.#seen.find(matches)
    if (old !== undefined) return Promise.resolve(old)
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer)
        this.#listeners.delete(listener)
        act()
      }
      const listener = (line: T | undefined) => {
        if (line === undefined) settle(() => reject(new UnavailableError(`a process of the demo ended before ${what}`)))
        else if (matches(line)) settle(() => resolve(line))
      }
      const timer = setTimeout(() => {
        settle(() => reject(new AcquireTimeoutError(`the demo waited ${Math.round(limitMs)} ms until ${what}`)))
      }, limitMs)
      this.#listeners.add(listener)
      if (this.#isClosed) listener(undefined)
    })
  }
}

/** Starts the lock service of the demo: `leasehold serve` on a free port. */
export async function startService(children: Children, folder: string, limitMs: number) {
  const child = children.spawn([
    BIN,
    'serve',
    '--data',
    folder,
    '--listen',
    '127.0.0.1:0',
    '--token-start',
    String(TOKEN_START),
    '--json',
    '--log-level',
    'error',
  ])
  const lines = new Lines<{ url?: string }>(child, () => {})
  const { url } = await lines.find((line) => line.url !== undefined, 'the service was ready', limitMs)
  return { url: url as string, stop: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
  await exited
  clearTimeout(timer)
}

/** A worker process of the demo, and its reports. */
export class Worker {
  readonly #child: ChildProcess
  readonly #lines: Lines<Report>
  readonly #gone: Promise<unknown>

  constructor(children: Children, task: WorkerTask, onReport: (report: Report) => void) {
    this.#child = children.spawn([WORKER, JSON.stringify(task)])
    this.#gone = new Promise((resolve) => this.#child.once('close', resolve))
    this.#lines = new Lines(this.#child, onReport)
  }

  /** Waits for the first report of one of these kinds. @throws UnavailableError if the worker fails */
  async report<K extends Report['kind']>(kinds: readonly K[], limitMs: number): Promise<Extract<Report, { kind: K }>> {
    const wanted: readonly string[] = [...kinds, 'failed']
    const found = await this.#lines.find(
      (line) => wanted.includes(line.kind),
      `a worker has ${kinds.join(' or ')}`,
      limitMs,
    )
    if (found.kind === 'failed' && !(kinds as readonly string[]).includes('failed')) {
      throw new UnavailableError(`a worker of the demo failed: ${found.error}: ${found.message}`)
    }
    return found as Extract<Report, { kind: K }>
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async gone(): Promise<void> {
    await this.#gone
  }
}
