import { HoldLostError, type LockState, NotHolderError, SessionEndedError } from '@leasehold/core'
import { lostReason } from './acquire-service.js'
import { type HoldDetails, holdFacts, sessionSecret } from '../state-queries.js'
import type { ReplicaClient } from '../replica-client.js'
import type { HoldHandle } from './handles.js'
import type { HttpSession } from './http-session.js'
import { checkSecret, type SessionRegistry } from './session-registry.js'

/** What the holder of a hold's handle may do: renew, release, prove. */
export class HoldService {
  constructor(readonly sessions: SessionRegistry) {}

  /** Renews the hold's session. Returns the new lease; undefined for a persistent hold, which needs none. */
  async renew(handle: HoldHandle): Promise<number | undefined> {
    const { replica } = this.sessions
    const before = await findHold(replica, handle)
    if (before === undefined) throw await this.#lost(handle)
    if (handle.session === undefined || before.session !== handle.session.session) return undefined
    const session = await this.sessions.use(handle.session)
    try {
      await this.sessions.renew(session)
    } catch (error) {
      if (!(error instanceof SessionEndedError)) throw error
      throw new HoldLostError('expired', `hold ${handle.hold} is lost: its session has ended`)
    }
    if (holdFacts(replica.member.stale().state, handle.hold) === undefined) throw await this.#lost(handle)
    return this.sessions.expiresInMs(session)
  }

  /** Releases exactly this hold, and ends the session that was opened for it alone. */
  async release(handle: HoldHandle): Promise<void> {
    const { replica } = this.sessions
    const facts = await findHold(replica, handle)
    const own = handle.ownsSession ? await this.#ownSession(handle) : undefined
    const work: Promise<unknown>[] = []
    if (facts === undefined)
      work.push(Promise.reject(new NotHolderError('the hold of this handle does not exist any more', { hint: gone })))
    else {
      const session = facts.session === undefined ? {} : { session: facts.session }
      const secret = facts.secret === undefined ? {} : { secret: facts.secret }
      work.push(replica.submit({ kind: 'release', hold: handle.hold, ...session, ...secret }, 'released'))
    }
    // Both go into the log together. The hold's own outcome counts; a session that is still there ends by its TTL.
    if (own !== undefined) work.push(this.sessions.close(own, 'its hold was released'))
    const [released] = await Promise.allSettled(work)
    if (released?.status === 'rejected') throw released.reason
  }

  async #ownSession(handle: HoldHandle): Promise<HttpSession | undefined> {
    try {
      return handle.session === undefined ? undefined : await this.sessions.use(handle.session)
    } catch (error) {
      if (error instanceof SessionEndedError) return undefined
      throw error
    }
  }

  /** Why a hold that the state no longer has was lost, as far as its session was told. */
  async #lost(handle: HoldHandle): Promise<HoldLostError> {
    let reason: HoldLostError['reason'] = 'expired'
    if (handle.session !== undefined) {
      try {
        const session = await this.sessions.use(handle.session)
        reason = lostReason(session.endOf(handle.hold) ?? 'closed')
      } catch (error) {
        if (!(error instanceof SessionEndedError)) throw error
      }
    }
    return new HoldLostError(reason, `hold ${handle.hold} is lost: ${reason}`, { hint: gone })
  }
}

const gone = 'stop the work that it protected; acquire again for more'

/**
 * The hold of a handle, if the caller proves the right to it. What this member has applied is enough to find it, since ids
 * and secrets never change; only "there is no such hold" needs a fresh read.
 */
export async function findHold(replica: ReplicaClient, handle: HoldHandle): Promise<HoldDetails | undefined> {
  const here = holdFacts(replica.member.stale().state, handle.hold)
  if (here !== undefined) return proven(replica.member.stale().state, handle)
  return replica.read(false, ({ state }) => proven(state, handle))
}

/**
 * The hold of a handle, if it exists and the handle proves the right to it: by the secret of the session that has it, or
 * by its own.
 * @throws AccessError
 */
function proven(state: LockState, handle: HoldHandle): HoldDetails | undefined {
  const facts = holdFacts(state, handle.hold)
  if (facts === undefined) return undefined
  const { session, secret } = handle
  if (session !== undefined && facts.session === session.session) {
    const owner = sessionSecret(state, session.session)
    if (owner !== undefined) {
      checkSecret(owner, session.secret, 'hold')
      return facts
    }
  }
  if (secret === undefined || facts.secret === undefined) {
    throw new NotHolderError(`hold ${handle.hold} belongs to another session`)
  }
  checkSecret(facts.secret, secret, 'hold')
  return facts
}
