import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { freePort } from '../../../../tests/services/ports.js'

export const BIN = fileURLToPath(new URL('../../../leasehold/bin/leasehold.js', import.meta.url))

// Every command is a process of its own, or three: on a busy machine that takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 240_000 })

/** The shortest and the longest pause between two checks of a condition. */
const POLL_MIN_MS = 20
const POLL_MAX_MS = 1_000

/** Bound for whatever should happen soon on a busy machine. */
export const SOON_MS = 60_000

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface CliOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly input?: string
  readonly cwd?: string
  /** The limit of open files; default: that of the test. */
  readonly openFiles?: number
}

/** A running command line with what it has printed so far. */
export class Cli {
  readonly process: ChildProcess
  readonly finished: Promise<Finished>
  stdout = ''
  stderr = ''

  constructor(args: readonly string[], options: CliOptions = {}) {
    const env: NodeJS.ProcessEnv = {}
    for (const [name, value] of Object.entries(process.env)) if (!name.startsWith('LEASEHOLD_')) env[name] = value
    const command = [process.execPath, BIN, ...args]
    const limited = ['sh', '-c', `ulimit -n ${options.openFiles} && exec "$0" "$@"`, ...command]
    const [program, ...rest] = options.openFiles === undefined ? command : limited
    this.process = spawn(program as string, rest, {
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      env: { ...env, NO_COLOR: '1', ...options.env },
      cwd: options.cwd,
    })
    this.process.stdin?.end(options.input)
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
    })
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
    })
    this.finished = new Promise((resolve) => {
      this.process.once('close', (code, signal) => resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }))
    })
  }

  get running(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal)
  }

  /** Waits until stdout contains `text`. */
  async printed(text: string): Promise<void> {
    await until(() => this.stdout.includes(text) || !this.running, `${JSON.stringify(text)} was printed`)
    if (!this.stdout.includes(text)) throw new Error(`ended without printing ${text}: ${this.stdout}${this.stderr}`)
  }
}

/** Waits until `text` was said on stderr. */
export async function complained(cli: Cli, text: string): Promise<void> {
  await until(() => cli.stderr.includes(text) || !cli.running, `${JSON.stringify(text)} was said`)
  if (!cli.stderr.includes(text)) throw new Error(`ended without saying ${text}: ${cli.stdout}${cli.stderr}`)
}

/**
 * Waits for a condition, with a bound. Pauses for as long as the condition took, so that one that runs commands leaves the
 * processor to what it waits for.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = SOON_MS,
): Promise<void> {
  const start = performance.now()
  for (;;) {
    const asked = performance.now()
    if (await condition()) return
    const now = performance.now()
    if (now - start > limitMs) throw new Error(`waited ${limitMs} ms until ${what}`)
    await sleep(Math.min(Math.max(now - asked, POLL_MIN_MS), POLL_MAX_MS))
  }
}

/** Whether a process exists and is no zombie that nobody has collected. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Everything that a test starts, and that its end takes away. */
export class Workshop {
  readonly #clis: Cli[] = []
  readonly #folders: string[] = []

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-cli-'))
    this.#folders.push(folder)
    return folder
  }

  start(args: readonly string[], options: CliOptions = {}): Cli {
    const cli = new Cli(args, options)
    this.#clis.push(cli)
    return cli
  }

  async run(args: readonly string[], options: CliOptions = {}): Promise<Finished> {
    return await this.start(args, options).finished
  }

  /** A service in a process of its own, on a port to which another one may come back. */
  async serve(data: string, more: readonly string[] = []): Promise<Service> {
    const listen = more.includes('--listen') ? [] : ['--listen', `127.0.0.1:${await freePort()}`]
    const cli = this.start(['serve', '--data', data, ...listen, '--json', '--log-level', 'error', ...more])
    await until(() => cli.stdout.includes('\n') || !cli.running, 'the service was ready')
    if (!cli.stdout.includes('\n')) throw new Error(`the service did not start: ${cli.stderr}`)
    const { url, epoch } = JSON.parse(cli.stdout) as { url: string; epoch: number }
    return { cli, url, epoch }
  }

  async close(): Promise<void> {
    for (const cli of this.#clis) if (cli.running) cli.kill('SIGKILL')
    await Promise.all(this.#clis.map((cli) => cli.finished))
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }
}

export interface Service {
  readonly cli: Cli
  readonly url: string
  readonly epoch: number
}
