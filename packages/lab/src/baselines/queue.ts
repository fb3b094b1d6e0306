import { type GrantedOnce, grantOrder } from '../scenarios/rules/index.js'
import type { HeldBy, LockClient, LockSystem } from '../scenarios/system.js'
import { type Label, type Process, RpcClient, serveRpc, type World } from '../world/index.js'
import { guardableOf } from './tokens.js'

/** `{ "kind": "queue", "token": "request" | "grant", "order": "fifo" | "newest" }` */
export interface QueueSpec {
  /** What the token numbers: the requests as they come in (default), or the grants. */
  readonly token?: 'request' | 'grant'
  /** Which waiter is next: the oldest (default), or the newest, as where new waiters may barge in. */
  readonly order?: 'fifo' | 'newest'
}

type Question = { readonly do: 'acquire' | 'release'; readonly lock: string; readonly client: string }
interface Answer {
  readonly token: bigint
}
interface Waiter {
  readonly client: string
  readonly request: bigint
  readonly reply: (answer: Answer, label?: Label) => void
}
interface Lock {
  holder: string | undefined
  readonly waiting: Waiter[]
}

const PORT = 'queue'
const SECOND = 1_000_000
const WAIT_US = 600 * SECOND
const RELEASE_WAIT_US = 5 * SECOND

/**
 * One server with a queue for each lock and no expiry: a hold ends with its release. It is there to show which number may be
 * the token. With `order: fifo` the number of the request does as well as that of the grant; with any other order only the
 * number of the grant grows from holder to holder.
 */
export function queue(world: World, spec: QueueSpec): LockSystem {
  const process = world.machine('S').spawn({})
  const locks = new Map<string, Lock>()
  const grants: GrantedOnce[] = []
  let requests = 0n
  const grant = (name: string, lock: Lock, { client, request, reply }: Waiter): void => {
    lock.holder = client
    const token = spec.token === 'grant' ? BigInt(grants.length + 1) : request
    grants.push({ lock: name, client, token, atUs: world.nowUs })
    reply({ token }, { text: `granted ${token}`, token: String(token) })
  }
  serveRpc<Question, Answer>(process, PORT, ({ do: what, lock: name, client }, reply) => {
    const lock = locks.get(name) ?? { holder: undefined, waiting: [] }
    locks.set(name, lock)
    if (what === 'acquire') {
      const waiter = { client, request: ++requests, reply }
      if (lock.holder === undefined) grant(name, lock, waiter)
      else lock.waiting.push(waiter)
      return
    }
    if (lock.holder === client) {
      lock.holder = undefined
      const next = spec.order === 'newest' ? lock.waiting.pop() : lock.waiting.shift()
      if (next !== undefined) grant(name, lock, next)
    }
    reply({ token: 0n })
  })
  return {
    members: ['S'],
    overlapViolates: false,
    client: (client) => new QueueClient(client),
    violations: () => grantOrder(grants),
  }
}

class QueueClient implements LockClient {
  readonly #process: Process
  readonly #rpc: RpcClient

  constructor(process: Process) {
    this.#process = process
    this.#rpc = RpcClient.of(process)
  }

  async acquire(lock: string): Promise<HeldBy | undefined> {
    const answer = await this.#ask('acquire', lock, WAIT_US)
    if (answer === undefined) return undefined
    return {
      token: answer.token,
      guardable: guardableOf(lock, answer.token),
      isValid: () => true,
      release: async () => void (await this.#ask('release', lock, RELEASE_WAIT_US)),
    }
  }

  #ask(what: Question['do'], lock: string, waitUs: number): Promise<Answer | undefined> {
    const question = { do: what, lock, client: this.#process.name }
    return this.#rpc.ask<Answer>({ machine: 'S', port: PORT }, question, waitUs, { text: `${what} ${lock}` })
  }
}
