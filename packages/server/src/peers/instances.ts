/** One run of the process of a node: every start generates a new id. */
export interface Instance {
  readonly node: number
  readonly instance: string
  /** The address where it listens for other members, HOST:PORT. */
  readonly address: string
}

/** Returns the member that listens at an address; undefined without one. Older versions send no instance. */
export type FindInstance = (
  address: string,
) => Promise<{ readonly node: number; readonly instance?: string | undefined } | undefined>

/**
 * Admits one instance of each node at a time. A data folder that was copied, or mounted twice, makes two processes with one
 * node number and one vote, which must not count twice.
 *
 * A new instance is the same member after a restart, unless another instance runs: at the address of the instance that
 * was admitted last, or at the address that the cluster has for the node. This member asks those addresses, and does not
 * rely on open connections, which survive a power failure of the peer. An address without an answer counts as free.
 */
export class Instances {
  readonly #find: FindInstance
  readonly #admitted = new Map<number, Instance>()
  /** One decision per node at a time. */
  readonly #deciding = new Map<number, Promise<unknown>>()

  constructor(find: FindInstance) {
    this.#find = find
  }

  /** Whether exactly this instance was admitted before. */
  isAdmitted({ node, instance }: Instance): boolean {
    return this.#admitted.get(node)?.instance === instance
  }

  /** Resolves with the address of another running instance, or with undefined if `caller` is admitted. Never rejects. */
  async admit(caller: Instance, known: string | undefined): Promise<string | undefined> {
    const { node } = caller
    const decision = Promise.resolve(this.#deciding.get(node)).then(() => this.#decide(caller, known))
    this.#deciding.set(node, decision)
    const other = await decision
    if (this.#deciding.get(node) === decision) this.#deciding.delete(node)
    return other
  }

  /** Removes nodes that are no longer peers. */
  keepOnly(nodes: ReadonlySet<number>): void {
    for (const node of this.#admitted.keys()) if (!nodes.has(node)) this.#admitted.delete(node)
  }

  async #decide(caller: Instance, known: string | undefined): Promise<string | undefined> {
    const { node, instance } = caller
    const last = this.#admitted.get(node)
    if (last?.instance === instance) return undefined
    const addresses = new Set([last?.address, known].filter((address) => address !== undefined && address !== ''))
    for (const address of addresses as Set<string>) {
      const answer = await this.#find(address).catch(() => undefined)
      if (answer?.node !== node || answer.instance === undefined || answer.instance === instance) continue
      this.#admitted.set(node, { node, instance: answer.instance, address })
      return address
    }
    this.#admitted.set(node, caller)
    return undefined
  }
}
