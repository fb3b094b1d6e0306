import { HoldLostError, InvalidError, LeaseholdError, type Token } from '@leasehold/core'
import type { GuardableHold } from '../common/hold.js'

/** Your resource, as the test kit uses it. It stores one number, with any initial value. */
export interface FencedResource {
  /** Opens the resource under a hold, which raises its mark. */
  open(hold: GuardableHold): Promise<unknown>
  /** Reads the number. */
  read(hold: GuardableHold): Promise<number>
  /** Writes the number. Must write nothing and reject with a StaleTokenError if the resource has seen a later token. */
  write(hold: GuardableHold, value: number): Promise<unknown>
  /** Deletes what was written. A later `write` may create it again. */
  remove?(hold: GuardableHold): Promise<unknown>
  /** Kills and restarts the process that checks the token. */
  restart?(): Promise<unknown>
  /** Whether an error is the rejection of a stale token. Default: its code is `stale-token`. */
  isStale?(error: unknown): boolean
}

/** A hold of the test kit. */
export interface StageHold extends GuardableHold {
  readonly token: Token
  /** Makes the local deadline pass. */
  lose(): void
}

/** A fault of the resource that a scenario has found. */
export class Finding extends InvalidError {
  static override readonly errorClass: string = 'FencingFinding'
  constructor(message: string, cause?: unknown) {
    super(message, { code: 'mismatch', cause })
  }
}

/** Grants holds in the order of a lock service, and calls the resource under them. */
export class Stage {
  readonly resource: FencedResource
  readonly #lock: string
  #last: bigint

  constructor(resource: FencedResource, lock: string, from: bigint) {
    this.resource = resource
    this.#lock = lock
    this.#last = from - 1n
  }

  get last(): bigint {
    return this.#last
  }

  /** Grants the next hold. Its token is the next one, or `token`, which must be above all earlier ones. */
  grant(token: bigint = this.#last + 1n): StageHold {
    if (token <= this.#last) throw new InvalidError(`token ${token} is not above ${this.#last}`)
    this.#last = token
    let lost = false
    const name = this.#lock
    return {
      token: token as Token,
      names: [name],
      mode: 'exclusive',
      locks: [{ name, mode: 'exclusive', token }],
      tokenOf: () => token,
      assertHeld() {
        if (lost)
          throw new HoldLostError(
            'deadline',
            `the hold with token ${token} is lost: the test kit has let its lease expire`,
          )
      },
      lose() {
        lost = true
      },
    }
  }

  async open(hold: StageHold): Promise<void> {
    await this.#must(`open with token ${hold.token}`, this.resource.open(hold))
  }

  async read(hold: StageHold): Promise<number> {
    const value: unknown = await this.#must(`read with token ${hold.token}`, this.resource.read(hold))
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
      throw new Finding(`read must return an integer, not ${typeof value === 'number' ? value : typeof value}`)
    }
    return value
  }

  async write(hold: StageHold, value: number): Promise<void> {
    await this.#must(`write ${value} with token ${hold.token}`, this.resource.write(hold, value))
  }

  /** Opens and reads. */
  async begin(hold: StageHold): Promise<number> {
    await this.open(hold)
    return await this.read(hold)
  }

  /** Attempts a write that must be rejected. */
  async expectRejected(hold: StageHold, value: number, seen: bigint): Promise<void> {
    if (await this.attempt(() => this.resource.write(hold, value))) {
      throw new Finding(`a write with token ${hold.token} was accepted after the resource had seen ${seen}`)
    }
  }

  /** Returns whether an operation was accepted; false if it was rejected as stale or its hold was lost. */
  async attempt(operation: () => Promise<unknown>): Promise<boolean> {
    try {
      await operation()
      return true
    } catch (error) {
      if (this.isRejection(error)) return false
      throw new Finding(`an error other than the rejection of a stale token: ${String(error)}`, error)
    }
  }

  async expectValue(expected: number): Promise<void> {
    const value = await this.begin(this.grant())
    if (value !== expected) throw new Finding(`the value is ${value}, but ${expected} was acknowledged`)
  }

  isRejection(error: unknown): boolean {
    if (error instanceof LeaseholdError && error.code === 'lost') return true
    if (this.resource.isStale !== undefined) return this.resource.isStale(error)
    return error instanceof LeaseholdError && error.code === 'stale-token'
  }

  async #must<T>(what: string, operation: Promise<T>): Promise<T> {
    try {
      return await operation
    } catch (error) {
      if (this.isRejection(error))
        throw new Finding(`the present holder was rejected: ${what}: ${String(error)}`, error)
      throw new Finding(`${what} failed: ${String(error)}`, error)
    }
  }
}
