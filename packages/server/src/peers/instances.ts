/** One run of the process of a node: every start mints a new number. */
export interface Instance {
  readonly node: number
  readonly instance: string
  /** Where it listens to other members, HOST:PORT. */
  readonly address: string
}

/** What listens at an address; undefined: nothing that answers as a member. Older versions know no instance. */
export type AskInstance = (
  address: string,
) => Promise<{ readonly node: number; readonly instance?: string | undefined } | undefined>

/**
 * Which instance of each node may speak to this member: one at a time. A data folder that was copied, or mounted twice, makes
 * two processes with one node number and one vote, which must not count twice.
 *
 * A new instance is the same member after a restart, unless another one lives: at the address of the instance that was
 * admitted last, or at the address that the cluster knows for the node. That is asked there, and never guessed from an open
 * connection, which survives a power cut of its peer. Where no answer comes, no other instance is known to live.
 */
export class Instances {
  private readonly admitted = new Map<number, Instance>()
  /** One decision per node at a time. */
  private readonly deciding = new Map<number, Promise<unknown>>()

  constructor(private readonly ask: AskInstance) {}

  /** Whether this very instance was admitted already. */
  isAdmitted({ node, instance }: Instance): boolean {
    return this.admitted.get(node)?.instance === instance
  }

  /** Resolves with the address of another instance that lives, or with undefined when `caller` is admitted. Never rejects. */
  async admit(caller: Instance, known: string | undefined): Promise<string | undefined> {
    const { node } = caller
    const decision = Promise.resolve(this.deciding.get(node)).then(() => this.decide(caller, known))
    this.deciding.set(node, decision)
    const other = await decision
    if (this.deciding.get(node) === decision) this.deciding.delete(node)
    return other
  }

  /** Drops what is known of nodes that are no peers any more. */
  keepOnly(nodes: ReadonlySet<number>): void {
    for (const node of this.admitted.keys()) if (!nodes.has(node)) this.admitted.delete(node)
  }

  private async decide(caller: Instance, known: string | undefined): Promise<string | undefined> {
    const { node, instance } = caller
    const last = this.admitted.get(node)
    if (last?.instance === instance) return undefined
    const places = new Set([last?.address, known].filter((address) => address !== undefined && address !== ''))
    for (const address of places as Set<string>) {
      const answer = await this.ask(address).catch(() => undefined)
      if (answer?.node !== node || answer.instance === undefined || answer.instance === instance) continue
      this.admitted.set(node, { node, instance: answer.instance, address })
      return address
    }
    this.admitted.set(node, caller)
    return undefined
  }
}
