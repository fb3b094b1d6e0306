import { UnavailableError } from '@leasehold/core'
import type { CasStore } from '../../src/cas.js'
import { pausePoint } from '../../src/testkit.js'

/** The fate of one write. */
export const FATES = ['fine', 'unsent', 'lost before', 'lost after', 'arrives late'] as const
export type Fate = (typeof FATES)[number]

/** A store of objects in memory with unique versions; `fate` decides the outcome of each write. */
export class FaultyStore implements CasStore<number> {
  readonly objects = new Map<string, { bytes: Uint8Array; version: number }>()
  /** Writes that were sent and have not arrived yet. */
  readonly underway: (() => void)[] = []
  fate: () => Fate = () => 'fine'
  readFails: () => boolean = () => false
  tellsVersion = true
  writes = 0
  #version = 0

  async read(key: string) {
    await this.#io()
    if (this.readFails()) throw new Error('socket hang up')
    return this.objects.get(key) ?? null
  }

  async write(key: string, bytes: Uint8Array, version: number | null) {
    await this.#io()
    this.writes++
    const fate = this.fate()
    if (fate === 'unsent') throw new UnavailableError('refused')
    if (fate === 'lost before') throw new Error('socket hang up')
    if (fate === 'arrives late') {
      this.underway.push(() => void this.#apply(key, bytes, version))
      throw new Error('timeout')
    }
    const written = this.#apply(key, bytes, version)
    await this.#io()
    if (fate === 'lost after') throw new Error('socket hang up')
    if (!written) return false
    return this.tellsVersion ? { version: written } : true
  }

  /** Lets a late write arrive. */
  arrive(): void {
    this.underway.shift()?.()
  }

  #apply(key: string, bytes: Uint8Array, version: number | null): number | false {
    if ((this.objects.get(key)?.version ?? null) !== version) return false
    this.objects.set(key, { bytes, version: ++this.#version })
    return this.#version
  }

  async #io(): Promise<void> {
    await pausePoint()
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}
