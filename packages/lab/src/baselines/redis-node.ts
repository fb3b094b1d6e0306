import { DurableCell, type Machine, type Process, serveRpc, type World } from '../world/index.js'

/** When a node's append-only file reaches the disk; `none`: it keeps no file at all. */
export type Fsync = 'always' | 'everysec' | 'no' | 'none'

export interface RedisNodeOptions {
  readonly fsync: Fsync
  /** Sends every write there, without waiting. */
  readonly replica?: string
  /** Keys that exist from the beginning: counters. */
  readonly initial?: Readonly<Record<string, string>>
  /** After a start, nothing is served until the clock says that this much time has passed since the node went down. */
  readonly startDelay?: { readonly us: number; readonly clock: 'wall' | 'boot' }
}

export type RedisCommand =
  | {
      readonly do: 'set'
      readonly key: string
      readonly value: string
      readonly ttlMs: number
      readonly incr?: string
      readonly owner?: string
    }
  | { readonly do: 'delete'; readonly key: string; readonly ifValue?: string }

/** `ok`: set, or deleted. `counter`: the value of `incr` after it. */
export interface RedisAnswer {
  readonly ok: boolean
  readonly counter?: number
}

interface Entry {
  readonly value: string
  /** For pictures only. */
  readonly owner?: string
  /** Milliseconds of the wall clock, as Redis keeps them; undefined: no expiry. */
  readonly expiresMs: number | undefined
}

type Store = ReadonlyMap<string, Entry>

export const REDIS_PORT = 'redis'
const REPLICATION_PORT = 'replication'
const EVERY_SECOND_US = 1_000_000
/** The moments of the background fsync: half past every second. */
const FSYNC_PHASE_US = 500_000
const START_LOOK_US = 20_000

/**
 * A node of Redis, as far as locks see it: `SET key value NX PX ttl`, compare-and-delete (the published script), `DEL`, and
 * a script that sets and increments in one step. Keys expire by the node's wall clock, as in Redis (absolute times of
 * `gettimeofday`, also in the file). A killed process has handed its file to the system; a power cut loses what was not
 * synced.
 */
export class RedisNode {
  readonly name: string
  readonly machine: Machine
  process: Process
  readonly #world: World
  readonly #options: RedisNodeOptions
  readonly #cell: DurableCell<Store>
  #down: { readonly wallUs: number; readonly bootUs: number } | undefined

  constructor(world: World, name: string, options: RedisNodeOptions) {
    this.#world = world
    this.name = name
    this.#options = options
    this.machine = world.machine(name)
    const initial = Object.entries(options.initial ?? {}).map(
      ([key, value]) => [key, { value, expiresMs: undefined }] as const,
    )
    this.#cell = new DurableCell<Store>(this.machine, new Map(initial))
    this.process = this.#spawn()
  }

  start(): void {
    if (this.process.alive) return
    if (!this.machine.on) this.machine.powerOn()
    this.process = this.#spawn()
  }

  /** Out of memory: a key goes, whatever it was for. */
  evict(key: string): void {
    const next = new Map(this.#cell.value)
    next.delete(key)
    this.#cell.set(next)
    this.#note(`evicts the key ${key}`)
  }

  /** The owner of a key, and for how long by the clock of this node. */
  look(key: string): { readonly owner: string; readonly remainingMs: number | undefined } | undefined {
    const entry = this.#cell.value.get(key)
    if (entry === undefined || !this.process.alive) return undefined
    const { owner = '', expiresMs } = entry
    if (expiresMs === undefined) return { owner, remainingMs: undefined }
    const remainingMs = expiresMs - this.machine.clockUs('wall') / 1000
    return remainingMs > 0 ? { owner, remainingMs } : undefined
  }

  #spawn(): Process {
    const { machine } = this
    const process = machine.spawn({})
    process.onEnd((how) => {
      this.#down = { wallUs: machine.clockUs('wall'), bootUs: machine.clockUs('boot') }
      const isKept = how === 'killed' && this.#options.fsync !== 'none'
      if (isKept) this.#cell.commit()
      else this.#cell.lose()
    })
    process.start(() => this.#begin(process))
    return process
  }

  /** Waits out the delay after a restart, then serves. */
  #begin(process: Process): void {
    const { startDelay, fsync } = this.#options
    const down = this.#down
    if (startDelay !== undefined && down !== undefined) {
      const since = startDelay.clock === 'wall' ? down.wallUs : down.bootUs
      if (this.machine.clockUs(startDelay.clock) - since < startDelay.us) {
        process.after(START_LOOK_US, () => this.#begin(process))
        return
      }
    }
    if (fsync === 'everysec') this.#syncEverySecond(process, FSYNC_PHASE_US)
    serveRpc<RedisCommand, RedisAnswer>(process, REDIS_PORT, (command, reply) => {
      const answer = this.#apply(command)
      if (this.#options.fsync === 'always') this.#cell.commit()
      const { replica } = this.#options
      const { network } = this.#world
      if (replica !== undefined && answer.ok) {
        network.send(process, { machine: replica, port: REPLICATION_PORT }, command, { text: 'replicate' })
      }
      reply(answer, { text: replyText(command, answer) })
    })
    network(this.#world).bind<RedisCommand>(process, REPLICATION_PORT, (command) => void this.#apply(command))
    if (down !== undefined) this.#note('serves again')
  }

  #syncEverySecond(process: Process, delayUs: number): void {
    process.after(delayUs, () => {
      this.#cell.commit()
      this.#syncEverySecond(process, EVERY_SECOND_US)
    })
  }

  #apply(command: RedisCommand): RedisAnswer {
    const nowMs = Math.floor(this.machine.clockUs('wall') / 1000)
    const present = this.#cell.value.get(command.key)
    const entry = present?.expiresMs !== undefined && present.expiresMs <= nowMs ? undefined : present
    const next = new Map(this.#cell.value)
    if (command.do === 'delete') {
      if (entry === undefined || (command.ifValue !== undefined && entry.value !== command.ifValue))
        return { ok: false }
      next.delete(command.key)
      this.#cell.set(next)
      return { ok: true }
    }
    if (entry !== undefined) return { ok: false }
    const { owner = '' } = command
    next.set(command.key, { value: command.value, owner, expiresMs: nowMs + command.ttlMs })
    if (command.incr === undefined) {
      this.#cell.set(next)
      return { ok: true }
    }
    const counter = Number(next.get(command.incr)?.value ?? 0) + 1
    next.set(command.incr, { value: String(counter), expiresMs: undefined })
    this.#cell.set(next)
    return { ok: true, counter }
  }

  #note(text: string): void {
    this.#world.timeline.add({ kind: 'note', who: this.name, text })
  }
}

function network(world: World): World['network'] {
  return world.network
}

function replyText(command: RedisCommand, answer: RedisAnswer): string {
  if (command.do === 'delete') return answer.ok ? 'deleted' : 'not deleted'
  return answer.ok ? `OK${answer.counter === undefined ? '' : ` ${answer.counter}`}` : 'nil'
}
