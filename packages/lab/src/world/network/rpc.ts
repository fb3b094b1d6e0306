import type { Process } from '../process.js'
import type { Address, Label } from './datagrams.js'

interface Question {
  readonly number: number
  readonly body: object
}

interface Answer {
  readonly number: number
  readonly body: object
}

const REPLIES = 'replies'
const CLIENTS = new WeakMap<Process, RpcClient>()

/** Questions and answers as single frames: nothing is repeated, and an answer may come late or never. */
export class RpcClient {
  readonly #process: Process
  readonly #open = new Map<number, (body: object) => void>()
  #number = 0

  /** The one of this process: all its parts share the port for answers. */
  static of(process: Process): RpcClient {
    let client = CLIENTS.get(process)
    if (client === undefined) {
      client = new RpcClient(process)
      CLIENTS.set(process, client)
    }
    return client
  }

  constructor(process: Process) {
    this.#process = process
    process.world.network.bind<Answer>(process, REPLIES, ({ number, body }) => {
      const resolve = this.#open.get(number)
      this.#open.delete(number)
      resolve?.(body)
    })
  }

  /** Sends without waiting. */
  tell(to: Address, body: object, label?: Label): void {
    this.#process.world.network.send(this.#process, to, Object.freeze({ number: ++this.#number, body }), label)
  }

  /**
   * The answer, or undefined when none came within `timeoutUs` on the process's own clock. An answer that has arrived wins
   * over a timeout that is late, as with a blocking socket: what lies in its buffer is read.
   */
  ask<T extends object>(to: Address, body: object, timeoutUs: number, label?: Label): Promise<T | undefined> {
    const number = ++this.#number
    return new Promise((resolve) => {
      const cancel = this.#process.after(timeoutUs, () => {
        this.#process.soon(() => {
          if (this.#open.delete(number)) resolve(undefined)
        })
      })
      this.#open.set(number, (answer) => {
        cancel()
        resolve(answer as T)
      })
      this.#process.world.network.send(this.#process, to, Object.freeze({ number, body }), label)
    })
  }
}

/** Answers questions. `reply` may be called later, or never. */
export function serveRpc<Body extends object, Reply extends object>(
  process: Process,
  port: string,
  handler: (body: Body, reply: (answer: Reply, label?: Label) => void, from: string) => void,
): () => void {
  const { network } = process.world
  return network.bind<Question>(process, port, ({ number, body }, from) => {
    const reply = (answer: Reply, label?: Label) =>
      network.send(process, { machine: from, port: REPLIES }, Object.freeze({ number, body: answer }), label)
    handler(body as Body, reply, from)
  })
}
