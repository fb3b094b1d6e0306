import {
  type Ack,
  type Acquire,
  type Applied,
  type Command,
  type Index,
  LockState,
  type Limits,
  type LockRequest,
  type Millis,
  type Result,
  type SessionId,
} from '../../src/index.js'

/** A state with a clock of its own, and the shortest way to speak to it. */
export class Bench {
  readonly state: LockState
  private nonces = 0
  private index = 0
  private readonly numbers = new Map<number, number>()

  constructor(options: { epoch?: number; limits?: Partial<Limits> } = {}) {
    this.state = LockState.create({ epoch: options.epoch ?? 1, ...(options.limits ? { limits: options.limits } : {}) })
    this.at = 1000
    this.apply([])
  }

  at: number

  apply(commands: readonly Command[]): Applied {
    return this.state.apply({ at: this.at as Millis, commands }, ++this.index as Index)
  }

  one(command: Command): Result {
    return this.apply([command]).results[0] as Result
  }

  advance(ms: number): Applied {
    this.at += ms
    return this.apply([])
  }

  open(ttlMs = 10_000, client = ''): SessionId {
    const nonce = (++this.nonces).toString(16).padStart(32, '0')
    const result = this.one({ kind: 'openSession', nonce, secret: nonce, ttlMs: ttlMs as Millis, client, local: false })
    if (result.kind !== 'opened') throw new Error(JSON.stringify(result))
    return result.session
  }

  next(session: number): number {
    const number = (this.numbers.get(session) ?? 0) + 1
    this.numbers.set(session, number)
    return number
  }

  acquireCommand(
    session: SessionId,
    locks: readonly (LockRequest | string)[],
    options: Partial<Acquire> = {},
  ): Acquire {
    const request = this.next(session)
    return {
      kind: 'acquire',
      session,
      request,
      ack: { lowest: 1, also: [] } as Ack,
      locks: locks.map((lock) => (typeof lock === 'string' ? { name: lock, mode: 'exclusive' } : lock)),
      waitMs: 0,
      lockDelayMs: 0 as Millis,
      persistent: false,
      portable: false,
      data: new Uint8Array(0),
      ...options,
    }
  }

  acquire(session: SessionId, locks: readonly (LockRequest | string)[], options: Partial<Acquire> = {}): Result {
    return this.one(this.acquireCommand(session, locks, options))
  }

  /** The hold of an acquire that must be granted at once. */
  hold(session: SessionId, locks: readonly (LockRequest | string)[], options: Partial<Acquire> = {}) {
    const result = this.acquire(session, locks, options)
    if (result.kind !== 'granted') throw new Error(JSON.stringify(result))
    return result.grant
  }
}
