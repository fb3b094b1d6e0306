import type { HeldBy, LockClient, LockSystem } from '../scenarios/system.js'
import { type Process, RpcClient, serveRpc, type World } from '../world/index.js'
import { guardableOf } from './tokens.js'

/** `{ "kind": "zookeeper", "token": "sequence" | "czxid", "sequence": 33 }`; times are seconds. */
export interface ZookeeperSpec {
  /** What the client takes as its fencing token: the number in its node's name (default), or the transaction that made the node. */
  readonly token?: 'sequence' | 'czxid'
  /** How many children the lock's parent has had at the beginning. */
  readonly sequence?: number
  readonly ttl?: number
  /** How often empty containers are removed. */
  readonly containerCheck?: number
}

interface Child {
  readonly name: string
  readonly sequence: number
  readonly czxid: number
  readonly session: string
}

interface Container {
  /** The number of the next sequential child, as `cversion` of the parent gives it. */
  cversion: number
  readonly children: Map<string, Child>
}

type Question =
  | { readonly do: 'create'; readonly lock: string; readonly session: string }
  | { readonly do: 'children'; readonly lock: string }
  | { readonly do: 'delete'; readonly lock: string; readonly name: string }
  | { readonly do: 'ping'; readonly session: string }

const PORT = 'zookeeper'
const SECOND = 1_000_000
const ANSWER_WAIT_US = 5 * SECOND
const LOOK_US = 50_000
/** zxids of an ensemble that has lived for a while: epoch 3 of its leaders. */
const FIRST_ZXID = 3 * 2 ** 32 + 1_000

/**
 * The lock recipe of ZooKeeper: an ephemeral sequential child of a container; the lowest child has the lock. The number in
 * a child's name comes from its parent's `cversion`; a container that has had children and is empty is removed after a
 * while, and the next one begins at 0.
 */
export function zookeeper(world: World, spec: ZookeeperSpec): LockSystem {
  const process = world.machine('Z').spawn({})
  const tree = new Tree(process, spec)
  tree.serve()
  return { members: ['Z'], overlapViolates: true, client: (client) => new ZookeeperClient(client, spec) }
}

class Tree {
  readonly #process: Process
  readonly #spec: ZookeeperSpec
  readonly #containers = new Map<string, Container>()
  readonly #heardUs = new Map<string, number>()
  #zxid = FIRST_ZXID

  constructor(process: Process, spec: ZookeeperSpec) {
    this.#process = process
    this.#spec = spec
    if (spec.sequence !== undefined) this.#containers.set('L', { cversion: spec.sequence, children: new Map() })
  }

  serve(): void {
    serveRpc<Question, object>(this.#process, PORT, (question, reply) => reply(this.#answer(question)))
    this.#every(LOOK_US, () => this.#expire())
    this.#every((this.#spec.containerCheck ?? 60) * SECOND, () => this.#removeEmpty())
  }

  #answer(question: Question): object {
    if (question.do === 'ping') {
      this.#heardUs.set(question.session, this.#nowUs())
      return {}
    }
    if (question.do === 'create') {
      this.#heardUs.set(question.session, this.#nowUs())
      const container = this.#containers.get(question.lock) ?? { cversion: 0, children: new Map<string, Child>() }
      this.#containers.set(question.lock, container)
      const sequence = container.cversion++
      const name = `lock-${String(sequence).padStart(10, '0')}`
      const child = { name, sequence, czxid: this.#zxid++, session: question.session }
      container.children.set(name, child)
      return child
    }
    const container = this.#containers.get(question.lock)
    if (question.do === 'children') return { names: [...(container?.children.keys() ?? [])].sort() }
    this.#zxid++
    container?.children.delete(question.name)
    return {}
  }

  #expire(): void {
    const ttlUs = (this.#spec.ttl ?? 10) * SECOND
    for (const { children } of this.#containers.values()) {
      for (const child of children.values()) {
        if (this.#nowUs() - (this.#heardUs.get(child.session) ?? 0) >= ttlUs) children.delete(child.name)
      }
    }
  }

  #removeEmpty(): void {
    for (const [name, { cversion, children }] of this.#containers) {
      if (children.size > 0 || cversion === 0) continue
      this.#containers.delete(name)
      this.#process.world.timeline.add({ kind: 'note', who: 'Z', text: `removes the empty container of ${name}` })
    }
  }

  #every(us: number, action: () => void): void {
    this.#process.after(us, () => {
      action()
      this.#every(us, action)
    })
  }

  #nowUs(): number {
    return this.#process.machine.clockUs('monotonic')
  }
}

class ZookeeperClient implements LockClient {
  readonly #process: Process
  readonly #spec: ZookeeperSpec
  readonly #rpc: RpcClient
  #confirmedUs = 0

  constructor(process: Process, spec: ZookeeperSpec) {
    this.#process = process
    this.#spec = spec
    this.#rpc = RpcClient.of(process)
  }

  async acquire(lock: string): Promise<HeldBy | undefined> {
    this.#confirmedUs = this.#nowUs()
    const child = await this.#ask<Child>({ do: 'create', lock, session: this.#process.name }, 'create')
    if (child === undefined) return undefined
    void this.#keepAlive()
    for (;;) {
      const answer = await this.#ask<{ names: readonly string[] }>({ do: 'children', lock }, undefined)
      if (answer?.names[0] === child.name) break
      await this.#process.sleep(LOOK_US)
    }
    const token = BigInt(this.#spec.token === 'czxid' ? child.czxid : child.sequence)
    const ttlUs = (this.#spec.ttl ?? 10) * SECOND
    return {
      token,
      guardable: guardableOf(lock, token),
      isValid: () => this.#nowUs() < this.#confirmedUs + ttlUs,
      release: async () => void (await this.#ask({ do: 'delete', lock, name: child.name }, 'delete')),
    }
  }

  async #keepAlive(): Promise<void> {
    const third = ((this.#spec.ttl ?? 10) * SECOND) / 3
    for (;;) {
      await this.#process.sleep(third)
      const sentUs = this.#nowUs()
      if ((await this.#ask({ do: 'ping', session: this.#process.name }, undefined)) !== undefined)
        this.#confirmedUs = sentUs
    }
  }

  #ask<T extends object>(question: Question, text: string | undefined): Promise<T | undefined> {
    const label = text === undefined ? undefined : { text }
    return this.#rpc.ask<T>({ machine: 'Z', port: PORT }, question, ANSWER_WAIT_US, label)
  }

  #nowUs(): number {
    return this.#process.machine.clockUs('monotonic')
  }
}
