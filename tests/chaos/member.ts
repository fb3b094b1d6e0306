import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findExecutable } from '../services/process.js'

const BIN = fileURLToPath(new URL('../../packages/leasehold/bin/leasehold.js', import.meta.url))
/** Where it is there, the kernel ends a process of ours when this one is killed. */
const SETPRIV = process.platform === 'linux' ? findExecutable('setpriv') : undefined
const STOP_LIMIT_MS = 20_000
const LOG_TAIL_BYTES = 2_000
const LOOK_EVERY_MS = 20
const LOOK_TIMEOUT_MS = 2_000

/** The command that runs Node with these arguments, and ends with this process at the latest. */
export function nodeCommand(args: readonly string[]): [string, string[]] {
  if (SETPRIV === undefined) return [process.execPath, [...args]]
  return [SETPRIV, ['--pdeathsig', 'KILL', '--', process.execPath, ...args]]
}

export interface MemberPlace {
  readonly name: string
  readonly folder: string
  /** Where it takes clients. */
  readonly port: number
  /** Where it takes members; they are told the port of its door. */
  readonly peerPort: number
  /** Options of Node, such as something to load before. */
  readonly nodeOptions?: readonly string[]
}

/** Signals from outside, or a clean stop, end a member; every other end is a failure of the run. */
export type UnexpectedEnd = (member: ClusterMember, code: number | null, signal: string | null) => void

/** One member of the cluster: a folder, and a process while it runs. */
export class ClusterMember {
  readonly url: string
  /** Held back on purpose: not expected to answer. */
  stopped = false
  #child: ChildProcess | undefined
  #ending = false
  #exited: Promise<void> = Promise.resolve()

  readonly #clusterList: () => string
  readonly #onUnexpectedEnd: UnexpectedEnd

  constructor(
    readonly place: MemberPlace,
    clusterList: () => string,
    onUnexpectedEnd: UnexpectedEnd,
  ) {
    this.#clusterList = clusterList
    this.#onUnexpectedEnd = onUnexpectedEnd
    this.url = `http://127.0.0.1:${place.port}`
    mkdirSync(this.dataFolder, { recursive: true })
  }

  get name(): string {
    return this.place.name
  }

  get dataFolder(): string {
    return join(this.place.folder, 'data')
  }

  get running(): boolean {
    return this.#child !== undefined
  }

  /** Its node number, once it has one. */
  get node(): number | undefined {
    const file = join(this.dataFolder, 'muster.json')
    if (!existsSync(file)) return undefined
    return (JSON.parse(readFileSync(file, 'utf8')) as { node: number }).node
  }

  start(): void {
    if (this.#child !== undefined) throw new Error(`${this.name} runs already`)
    const { name, port, peerPort, nodeOptions = [] } = this.place
    const log = openSync(join(this.place.folder, 'log'), 'a')
    const [file, args] = nodeCommand([
      ...nodeOptions,
      BIN,
      'serve',
      ...['--data', this.dataFolder, '--listen', `127.0.0.1:${port}`],
      ...['--name', name, '--peer-listen', `127.0.0.1:${peerPort}`, '--cluster', this.#clusterList()],
    ])
    const child = spawn(file, args, { stdio: ['ignore', log, log] })
    closeSync(log)
    this.#child = child
    this.#ending = false
    this.#exited = new Promise((resolve) => {
      const ended = (code: number | null, signal: string | null): void => {
        if (this.#child === child) this.#child = undefined
        this.stopped = false
        if (!this.#ending) this.#onUnexpectedEnd(this, code, signal)
        resolve()
      }
      child.once('exit', ended)
      child.once('error', () => ended(null, 'could not be started'))
    })
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.killNow()
    await this.#exited
  }

  killNow(): void {
    this.#ending = true
    this.#child?.kill('SIGKILL')
  }

  /**
   * Makes its next sync hang (see `hanging-disk.mjs`, which it must have been started with), and kills it then; at the latest
   * after `limitMs`. Resolves with when that was, for the reader.
   */
  async killWithinSync(limitMs: number): Promise<string> {
    const [wish, hanging] = ['hang', 'hanging'].map((name) => join(this.place.folder, name)) as [string, string]
    writeFileSync(wish, 'process')
    const end = performance.now() + limitMs
    while (!existsSync(hanging) && performance.now() < end) await sleep(LOOK_EVERY_MS)
    await this.kill()
    const isWithin = existsSync(hanging)
    rmSync(wish, { force: true })
    rmSync(hanging, { force: true })
    return isWithin ? 'before a sync' : 'while it wrote nothing'
  }

  /** A clean stop; killed when that takes too long. Resolves with whether it was clean. */
  async end(): Promise<boolean> {
    const child = this.#child
    if (child === undefined) return true
    this.#ending = true
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    let clean = true
    const timer = setTimeout(() => {
      clean = false
      child.kill('SIGKILL')
    }, STOP_LIMIT_MS)
    await this.#exited
    clearTimeout(timer)
    return clean
  }

  pause(): void {
    this.stopped = this.#child?.kill('SIGSTOP') ?? false
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
    this.stopped = false
  }

  /** Its disk is gone. */
  wipe(): void {
    rmSync(this.dataFolder, { recursive: true, force: true })
    mkdirSync(this.dataFolder, { recursive: true })
  }

  /** The last lines that it printed. */
  logTail(): string {
    const file = join(this.place.folder, 'log')
    if (!existsSync(file)) return ''
    return readFileSync(file, 'utf8').slice(-Math.min(LOG_TAIL_BYTES, statSync(file).size))
  }

  /** Resolves when the process answers, whether it has a quorum or not. @returns false after `limitMs` */
  async answers(limitMs: number): Promise<boolean> {
    const end = performance.now() + limitMs
    while (performance.now() < end) {
      try {
        const response = await fetch(`${this.url}/healthz`, { signal: AbortSignal.timeout(LOOK_TIMEOUT_MS) })
        await response.arrayBuffer()
        return true
      } catch {
        await sleep(LOOK_EVERY_MS)
      }
    }
    return false
  }
}

/** A file system of its own for a member's folder, so that it can be filled; undefined when this user may not mount one. */
export function mountSmallDisk(
  folder: string,
  megabytes: number,
): { fill(): void; empty(): void; unmount(): void } | undefined {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder])
  if (mounted.status !== 0) return undefined
  const filler = join(folder, 'filler')
  return {
    fill() {
      const piece = Buffer.alloc(64 * 1024)
      try {
        for (let i = 0; i < megabytes * 16; i++) writeFileSync(filler, piece, { flag: 'a' })
      } catch {
        // Full: that is the aim.
      }
    },
    empty: () => rmSync(filler, { force: true }),
    unmount: () => void spawnSync('umount', ['-l', folder]),
  }
}
