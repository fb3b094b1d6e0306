import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './ports.js'

/** How long a server may take until it answers. */
const START_TIMEOUT_MS = 60_000
/** How long the last gentle signal may take before the server is killed, and how long each one before it. */
const STOP_TIMEOUT_MS = 10_000
const STOP_NEXT_MS = 1_000
/** Another process may take a free port before the server binds it: so many attempts. */
const START_ATTEMPTS_MAX = 5
/** Parts of a server that was killed (the other processes of PostgreSQL) may hold its folder for a while. */
const RESTART_ATTEMPTS_MAX = 20
const RESTART_PAUSE_MS = 500
/** What is kept of a server's output for messages. */
const OUTPUT_BYTES_MAX = 8_192

/** A started throw-away server: it ends with this process at the latest. */
export interface Service {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly url: string
  /** The server's own temporary folder, removed by `stop`. */
  readonly folder: string
  /** Of the process that runs now. */
  readonly pid: number
  /** The last lines that the server printed. */
  output(): string
  /** Ends the server (gently, then with SIGKILL) and removes its folder. May be called twice. */
  stop(): Promise<void>
  /** Sends a signal to the server's main process, and waits for its end if that signal ends it. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Ends the server (with SIGKILL, as a crash does, or as `signal` does) unless it has ended, and starts it on its folder and port. */
  restart(signal?: NodeJS.Signals): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface Launch {
  /** For messages and the folder's name: `postgres`, `redis`, `etcd`. */
  readonly name: string
  /** Prepares the folder; runs once. */
  prepare?(folder: string): Promise<void> | void
  /** The command for a port; called again with another port when the first one was taken. */
  command(
    folder: string,
    port: number,
  ): Promise<{ file: string; args: string[]; env?: NodeJS.ProcessEnv; uid?: number; gid?: number }>
  url(port: number): string
  /** Rejects while the server does not answer yet. */
  probe(port: number): Promise<void>
  /** The signals that end the server gently: the next one if the one before has not done it for a while. */
  stopSignals: readonly NodeJS.Signals[]
}

/** The path of an executable, looked up in PATH and in `folders`; undefined when there is none. */
export function findExecutable(name: string, folders: readonly string[] = []): string | undefined {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), ...folders]) {
    if (folder === '') continue
    const file = join(folder, name)
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      // not here
    }
  }
  return undefined
}

/** A new folder in the system's temporary folder. */
export function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `leasehold-${name}-`))
}

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<void>
  hasEnded: boolean
  output: string
}

const running = new Set<Running>()
process.once('exit', () => {
  for (const one of running) one.child.kill('SIGKILL')
})

/** On Linux the kernel ends the server when this process is killed, too. */
const setpriv = process.platform === 'linux' ? findExecutable('setpriv') : undefined

function run(command: Awaited<ReturnType<Launch['command']>>, folder: string): Running {
  const { file, args, env, uid, gid } = command
  const options = {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'],
  }
  const child =
    setpriv === undefined
      ? spawn(file, args, { ...options, ...(uid === undefined ? {} : { uid, gid }) })
      : spawn(
          setpriv,
          [
            ...(uid === undefined ? [] : [`--reuid=${uid}`, `--regid=${gid ?? uid}`, '--clear-groups']),
            ...['--pdeathsig', 'KILL', '--', file],
            ...args,
          ],
          options,
        )
  const one: Running = {
    child,
    hasEnded: false,
    output: '',
    ended: new Promise((resolve) => {
      child.once('exit', () => {
        one.hasEnded = true
        running.delete(one)
        resolve()
      })
      child.once('error', (error) => {
        one.output += String(error)
        one.hasEnded = true
        running.delete(one)
        resolve()
      })
    }),
  }
  running.add(one)
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8')
    stream.on('data', (text: string) => {
      one.output = (one.output + text).slice(-OUTPUT_BYTES_MAX)
    })
  }
  return one
}

async function untilReady(one: Running, probe: () => Promise<void>): Promise<boolean> {
  const end = Date.now() + START_TIMEOUT_MS
  for (let pauseMs = 10; Date.now() < end; pauseMs = Math.min(pauseMs * 2, 100)) {
    if (one.hasEnded) return false
    try {
      await probe()
      return !one.hasEnded
    } catch {
      await sleep(pauseMs)
    }
  }
  return false
}

async function end(one: Running, ...signals: readonly NodeJS.Signals[]): Promise<void> {
  for (const [i, signal] of [...signals, 'SIGKILL' as const].entries()) {
    if (one.hasEnded) return
    one.child.kill(signal)
    await within(one.ended, i < signals.length - 1 ? STOP_NEXT_MS : STOP_TIMEOUT_MS)
  }
}

async function within(ended: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs)
  })
  await Promise.race([ended, late])
  clearTimeout(timer)
}

/** Starts a server in a new folder on a free port of 127.0.0.1, and waits until it answers. */
export async function start(launch: Launch): Promise<Service> {
  const folder = temporaryFolder(launch.name)
  let lastOutput = ''
  try {
    await launch.prepare?.(folder)
    for (let attempt = 1; attempt <= START_ATTEMPTS_MAX; attempt++) {
      const port = await freePort()
      const one = run(await launch.command(folder, port), folder)
      if (await untilReady(one, () => launch.probe(port))) return service(launch, folder, port, one)
      await end(one, 'SIGKILL')
      lastOutput = one.output
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  rmSync(folder, { recursive: true, force: true })
  throw new Error(`${launch.name} did not start in ${START_ATTEMPTS_MAX} attempts:\n${lastOutput}`)
}

function service(launch: Launch, folder: string, port: number, first: Running): Service {
  let one = first
  const stop = async () => {
    if (!one.hasEnded) one.child.kill('SIGCONT')
    await end(one, ...launch.stopSignals)
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  return {
    host: '127.0.0.1',
    port,
    url: launch.url(port),
    folder,
    get pid() {
      return one.child.pid as number
    },
    output: () => one.output,
    stop,
    async kill(signal = 'SIGKILL') {
      one.child.kill(signal)
      if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await end(one, signal)
    },
    async restart(signal = 'SIGKILL') {
      await end(one, signal)
      for (let attempt = 1; ; attempt++) {
        one = run(await launch.command(folder, port), folder)
        if (await untilReady(one, () => launch.probe(port))) return
        if (!one.hasEnded || attempt >= RESTART_ATTEMPTS_MAX) {
          throw new Error(`${launch.name} did not start again:\n${one.output}`)
        }
        await sleep(RESTART_PAUSE_MS)
      }
    },
    [Symbol.asyncDispose]: stop,
  }
}
