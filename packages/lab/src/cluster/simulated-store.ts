import { UnavailableError } from '@leasehold/core'
import type { CasStore } from '@leasehold/fence/cas'
import type { Machine } from '../world/machine.js'
import type { Process } from '../world/process.js'

type Ask =
  | { readonly kind: 'read'; readonly id: string; readonly key: string }
  | {
      readonly kind: 'write'
      readonly id: string
      readonly key: string
      readonly bytes: Uint8Array
      readonly version: number | null
    }
type Answer =
  | { readonly id: string; readonly found: { readonly bytes: Uint8Array; readonly version: number } | null }
  | { readonly id: string; readonly version: number | false }

const PORT = 'store'
const TIMEOUT_US = 2_000_000

/** A store of objects with a conditional write, on a machine of its own; it is never down, and the way to it may be. */
export class SimulatedStore {
  readonly objects = new Map<string, { readonly bytes: Uint8Array; readonly version: number }>()
  /** Hears of everything that is written. */
  onWrite: (key: string, bytes: Uint8Array) => void = () => {}
  #version = 0

  constructor(readonly machine: Machine) {
    const process = machine.spawn({ name: machine.name })
    const { network } = machine.world
    network.bind<Ask>(process, PORT, (ask, from) => {
      network.send(process, { machine: from, port: PORT }, this.#once(ask))
    })
  }

  /** The store as a client's process uses it. Its answers may get lost. */
  connect(process: Process): CasStore<number> {
    const { network } = process.world
    const waiting = new Map<string, (answer: Answer) => void>()
    let asked = 0
    network.bind<Answer>(process, PORT, (answer) => waiting.get(answer.id)?.(answer))
    const ask = async (make: (id: string) => Ask): Promise<Answer> => {
      const id = `${process.name}.${process.world.nowUs}.${++asked}`
      const answer = await new Promise<Answer | undefined>((resolve) => {
        const cancel = process.after(TIMEOUT_US, () => resolve(undefined))
        waiting.set(id, (one) => {
          cancel()
          resolve(one)
        })
        network.send(process, { machine: this.machine.name, port: PORT }, make(id))
      })
      waiting.delete(id)
      if (!answer) throw new Error('the store did not answer')
      return answer
    }
    return {
      async read(key) {
        const answer = await ask((id) => ({ kind: 'read', id, key }))
        if ('found' in answer) return answer.found
        throw new UnavailableError('an answer to something else')
      },
      async write(key, bytes, version) {
        const answer = await ask((id) => ({ kind: 'write', id, key, bytes, version }))
        if ('found' in answer) throw new UnavailableError('an answer to something else')
        return answer.version === false ? false : { version: answer.version }
      },
    }
  }

  /** A request that the network has doubled is one request: over a connection it could not come twice. */
  #once(ask: Ask): Answer {
    const known = this.#answers.get(ask.id)
    if (known) return known
    const answer = this.#answer(ask)
    if (ask.kind === 'write') this.#answers.set(ask.id, answer)
    return answer
  }

  readonly #answers = new Map<string, Answer>()

  #answer(ask: Ask): Answer {
    const now = this.objects.get(ask.key)
    if (ask.kind === 'read') return { id: ask.id, found: now ?? null }
    if ((now?.version ?? null) !== ask.version) return { id: ask.id, version: false }
    this.objects.set(ask.key, { bytes: ask.bytes, version: ++this.#version })
    this.onWrite(ask.key, ask.bytes)
    return { id: ask.id, version: this.#version }
  }
}
