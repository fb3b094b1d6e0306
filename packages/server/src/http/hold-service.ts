import {
  type HoldDetails,
  holdDetailsOf,
  HoldLostError,
  type LockState,
  NotHolderError,
  SessionEndedError,
  sessionSecretOf,
} from '@leasehold/core'
import { lostReason } from './acquire-service.js'
import type { ReplicaClient } from '../replica-client.js'
import type { HoldHandle } from './handles.js'
import type { HttpSession } from './http-session.js'
import { checkSecret, type SessionRegistry } from './session-registry.js'

/** Renews and releases holds for callers that present a hold handle. */
export class HoldService {
  readonly #sessions: SessionRegistry

  constructor(sessions: SessionRegistry) {
    this.#sessions = sessions
  }

  /**
   * Renews the session of the hold. Returns the milliseconds until it expires; undefined for a persistent hold.
   * @throws HoldLostError
   */
  async renew(handle: HoldHandle): Promise<number | undefined> {
    const { replica } = this.#sessions
    const before = await findHold(replica, handle)
    if (before === undefined) throw await this.#lost(handle)
    if (handle.session === undefined || before.session !== handle.session.session) return undefined
    const session = await this.#sessions.use(handle.session)
    try {
      await this.#sessions.renew(session)
    } catch (error) {
      if (!(error instanceof SessionEndedError)) throw error
      throw new HoldLostError('expired', `hold ${handle.hold} is lost: its session ended`)
    }
    if (holdDetailsOf(replica.member.stale().state, handle.hold) === undefined) throw await this.#lost(handle)
    return this.#sessions.expiresInMs(session)
  }

  /** Releases exactly this hold, and closes the session that was opened for it alone. */
  async release(handle: HoldHandle): Promise<void> {
    const { replica } = this.#sessions
    const hold = await findHold(replica, handle)
    const own = handle.ownsSession ? await this.#ownSession(handle) : undefined
    const work: Promise<unknown>[] = []
    if (hold === undefined)
      work.push(Promise.reject(new NotHolderError('the hold of this handle no longer exists', { hint: LOST_HINT })))
    else {
      const session = hold.session === undefined ? {} : { session: hold.session }
      const secret = hold.secret === undefined ? {} : { secret: hold.secret }
      work.push(replica.submit({ kind: 'release', hold: handle.hold, ...session, ...secret }, 'released'))
    }
    // Both commands enter the log together. Only the outcome of the release counts; a session that stays open expires.
    if (own !== undefined) work.push(this.#sessions.close(own, 'its hold was released'))
    const [released] = await Promise.allSettled(work)
    if (released?.status === 'rejected') throw released.reason
  }

  async #ownSession(handle: HoldHandle): Promise<HttpSession | undefined> {
    try {
      return handle.session === undefined ? undefined : await this.#sessions.use(handle.session)
    } catch (error) {
      if (error instanceof SessionEndedError) return undefined
      throw error
    }
  }

  /** The error for a hold that no longer exists, with the reason that its session recorded. */
  async #lost(handle: HoldHandle): Promise<HoldLostError> {
    let reason: HoldLostError['reason'] = 'expired'
    if (handle.session !== undefined) {
      try {
        const session = await this.#sessions.use(handle.session)
        reason = lostReason(session.endOf(handle.hold) ?? 'closed')
      } catch (error) {
        if (!(error instanceof SessionEndedError)) throw error
      }
    }
    return new HoldLostError(reason, `hold ${handle.hold} is lost: ${reason}`, { hint: LOST_HINT })
  }
}

const LOST_HINT = 'stop the work that it protected; acquire again to continue'

/**
 * Returns the hold of a handle, after it has verified the secret of the handle; undefined if there is no such hold.
 * The applied state of this member is enough to find a hold, because ids and secrets never change; only "no such hold"
 * needs a linearizable read.
 * @throws AccessError, NotHolderError
 */
export async function findHold(replica: ReplicaClient, handle: HoldHandle): Promise<HoldDetails | undefined> {
  const here = holdDetailsOf(replica.member.stale().state, handle.hold)
  if (here !== undefined) return verifiedHold(replica.member.stale().state, handle)
  return replica.read(false, ({ state }) => verifiedHold(state, handle))
}

/** Verifies the handle by the secret of the session that owns the hold, or by the secret of the hold itself. */
function verifiedHold(state: LockState, handle: HoldHandle): HoldDetails | undefined {
  const hold = holdDetailsOf(state, handle.hold)
  if (hold === undefined) return undefined
  const { session, secret } = handle
  if (session !== undefined && hold.session === session.session) {
    const owner = sessionSecretOf(state, session.session)
    if (owner !== undefined) {
      checkSecret(owner, session.secret, 'hold')
      return hold
    }
  }
  if (secret === undefined || hold.secret === undefined) {
    throw new NotHolderError(`hold ${handle.hold} belongs to another session`)
  }
  checkSecret(hold.secret, secret, 'hold')
  return hold
}
