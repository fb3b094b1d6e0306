import type { ClientPlatform, EngineGrant } from '@leasehold/client'
import type { EndReasonRecord, HoldRecord } from './layout.js'
import type { TxnRequest, TxnResponse } from './api/messages.js'
import type { Store } from './store.js'

/** A hold of a session. */
export interface OwnHold {
  readonly request: string
  readonly record: HoldRecord
  /** Whether it was granted from the queue: others may wait behind it. */
  readonly hasWaited: boolean
}

/** The outcome of a transaction that depends on the session. */
export interface GuardedOutcome {
  readonly inner: TxnResponse
  readonly revision: number
  /** Whether the answer to an earlier sending was lost. */
  readonly wasLost: boolean
}

/** A session as its acquires, adoptions and writes see it. */
export interface SessionContext {
  readonly id: bigint
  readonly sid: string
  /** The lease of etcd under which the session's keys lie. */
  readonly leaseId: bigint
  readonly client: string
  readonly store: Store
  readonly platform: ClientPlatform
  /** Answers of writes that have arrived; the next write deletes them. */
  readonly settledWrites: number[]
  nextRequest(): number
  /** The lease for the delays after holds of this session with this lock delay. */
  delayLease(delayMs: number, timeoutMs: number): Promise<bigint>
  /**
   * Runs a transaction exactly once, and only while the session is alive. `build` is called again after a lost answer, when
   * the barrier has made sure that no earlier sending can take effect. `isWanted`: whether to try at all.
   */
  guarded(timeoutMs: number, build: (wasLost: boolean) => TxnRequest, isWanted?: () => boolean): Promise<GuardedOutcome>
  /** Resolves when nothing that was sent before can take effect any more. */
  barrier(timeoutMs: number): Promise<void>
  /** Deletes everything of a request, and retries until it succeeds or the session ends. */
  retryRelease(names: readonly string[], request: string, reason: Omit<EndReasonRecord, 'request'>): Promise<void>
  /** Registers a hold of this session. */
  granted(id: bigint, hold: OwnHold, secret: string | undefined): EngineGrant
}
