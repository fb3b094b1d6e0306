import { EpochChangedError, type Fence, type Grant, type Serial, splitToken, tokenOf } from '@leasehold/core'
import type { EngineGrant } from '../engine.js'

/** Converts between the client's full 63-bit ids and the service's serials, by the epoch of a session. */
export class EpochIds {
  readonly #epoch: number

  constructor(epoch: number) {
    this.#epoch = epoch
  }

  grant(grant: Grant): EngineGrant {
    const id = tokenOf(this.#epoch, grant.hold)
    const locks = grant.locks.map(({ name, mode, slot, token }) => {
      const full = tokenOf(this.#epoch, token)
      return slot === undefined ? { name, mode, token: full } : { name, mode, token: full, slot }
    })
    return grant.secret === undefined ? { id, locks } : { id, locks, secret: grant.secret }
  }

  /** @throws EpochChangedError for an id of another epoch: it names nothing here */
  serial(id: bigint, what: string): Serial {
    const { epoch, serial } = splitToken(id)
    if (epoch === this.#epoch) return serial
    throw new EpochChangedError(`the ${what} ${id} is of epoch ${epoch}, the service of ${this.#epoch}`)
  }

  fence(fence: { hold: bigint; lock: string } | undefined): { fence?: Fence } {
    return fence === undefined ? {} : { fence: { hold: this.serial(fence.hold, 'hold'), lock: fence.lock } }
  }
}
