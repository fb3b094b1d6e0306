import type { Hold } from '@leasehold/client'
import type { SimulatedClient } from '../../../cluster/index.js'
import { peekRemaining } from '../peek-remaining.js'

interface Shown {
  readonly id: string
  readonly hold: Hold
  readonly isOver: () => string | undefined
}

/** Holds of one client that a picture shows at a time: more would be neither readable nor cheap. */
const SHOWN_MAX = 16

/** What a client of a cluster does, told for pictures. Nothing of the run depends on it. */
export class ClientNarrator {
  readonly #shown = new Set<Shown>()
  #count = 0
  #stop: (() => void) | undefined

  readonly #client: SimulatedClient

  constructor(client: SimulatedClient) {
    this.#client = client
  }

  says(text: string, hold?: Hold): void {
    const { timeline } = this.#client.machine.world
    const token = hold === undefined ? {} : { token: String(hold.token) }
    timeline.add({ kind: 'client', who: this.#client.name, text, ...token })
  }

  /** From now on the client calls the hold its own, until it releases the hold or the hold expires by its clock. */
  has(hold: Hold): void {
    const client = this.#client
    const names = hold.names.join(' and ')
    this.says(`has ${names}${hold.slot === undefined ? '' : `, slot ${hold.slot}`}`, hold)
    hold.on('warning', (warning) => this.says(`is warned: ${warning.message}`))
    void hold.lost.then((lost) => {
      if (lost === null) return
      this.#over(hold, 'lost')
      this.says(`is told that its hold of ${names} is lost (${lost.reason})`)
    })
    const { timeline } = client.machine.world
    if (!timeline.enabled || this.#shown.size >= SHOWN_MAX) return
    const { process } = client
    const remaining = peekRemaining(process, hold)
    const isOver = (): string | undefined => {
      if (!process.alive) return 'its process is gone'
      return !hold.persistent && remaining() <= 0 ? 'its lease has expired by its own clock' : undefined
    }
    const shown = { id: `${client.name} ${++this.#count}`, hold, isOver }
    this.#shown.add(shown)
    this.#stop ??= client.machine.world.afterEvent(() => this.#look())
    const lease = { kind: 'lease-begin', id: shown.id, view: 'believed', who: client.name } as const
    timeline.add({ ...lease, lock: names, token: String(hold.token) })
  }

  gives(hold: Hold): void {
    this.#over(hold, 'released')
    this.says(`releases ${hold.names.join(' and ')}`)
  }

  #look(): void {
    for (const shown of this.#shown) {
      const why = shown.isOver()
      if (why !== undefined) this.#end(shown, why)
    }
  }

  #over(hold: Hold, text: string): void {
    for (const shown of this.#shown) if (shown.hold === hold) this.#end(shown, text)
  }

  #end(shown: Shown, text: string): void {
    this.#shown.delete(shown)
    const { name: who, machine } = this.#client
    machine.world.timeline.add({ kind: 'lease-end', id: shown.id, who, text })
    if (this.#shown.size > 0) return
    this.#stop?.()
    this.#stop = undefined
  }
}
