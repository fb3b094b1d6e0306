import {
  AcquireTimeoutError,
  BusyError,
  EpochChangedError,
  LeaseholdError,
  LimitError,
  NotHolderError,
  SessionEndedError,
  UnavailableError,
} from '@leasehold/core'
import type { Elapsed } from '../lease/elapsed.js'
import type { EngineGrant, EngineStatus } from '../engine.js'
import { type Hold, quoted } from './hold.js'
import type { LeaseKeeper } from '../lease/lease-keeper.js'
import { begin, isObserved, observed } from '../observers.js'
import type { AcquirePlan } from '../options.js'
import type { ClientPlatform } from '../platform.js'
import { closedError, type SessionPool } from '../lease/session-pool.js'
import { abortedError, bounded, delay } from '../async/bounded-wait.js'

export interface AcquireContext {
  readonly platform: ClientPlatform
  readonly elapsed: Elapsed
  readonly pool: SessionPool
  readonly connectTimeoutMs: number
}

/** Pause between two attempts on new sessions, so that a service that ends every session at once is not flooded. */
const AGAIN_MS = 50
/** Attempts of an acquire that does not wait: its session may have ended unnoticed just before. */
const ATTEMPTS_WITHOUT_WAIT = 3

/**
 * Acquires the locks of `plan`. When the session ends during the wait, it retries on another session, within the
 * same wait. A grant that arrives after the deadline of its session is not returned.
 */
export function acquireHold(context: AcquireContext, plan: AcquirePlan): Promise<Hold> {
  if (!isObserved('acquire') && !isObserved('wait'))
    return acquireFast(context, plan) ?? acquireWithRetries(context, plan, 1)
  const { ttlMs, waitMs } = plan
  const names = () => plan.locks.map(({ name }) => name)
  const end = begin('acquire', () => ({ kind: 'acquire', call: plan, names: names(), ttlMs, waitMs }))
  return observed(end, acquireWithRetries(context, plan, 1), (hold) => ({ hold }))
}

/**
 * The fast path: the first attempt of a plain acquire on an open session. The same as in {@link acquireWithRetries}, with
 * two promises instead of a dozen. Undefined: not applicable.
 */
function acquireFast(context: AcquireContext, plan: AcquirePlan): Promise<Hold> | undefined {
  const { elapsed, pool } = context
  const { waitMs, signal, persistent } = plan
  if (signal !== undefined || persistent || needsDedicatedSession(plan) || pool.closed) return undefined
  const keeper = pool.ready(plan.ttlMs, plan.marginMs)
  if (keeper === undefined) return undefined
  const endAt = waitMs === Number.POSITIVE_INFINITY ? waitMs : elapsed.now() + waitMs
  keeper.acquireBegins()
  return keeper.session.acquire(plan).then(
    (grant) => {
      const hold = keeper.granted(grant, plan)
      if (hold === undefined) return acquireWithRetries(context, plan, 2, endAt)
      return pool.closed ? releaseIfClosed(hold, pool) : hold
    },
    (error: unknown) => {
      keeper.notGranted()
      if (!isRetryable(error) && !isWindowFull(error, keeper)) throw toTimeoutError(error, plan)
      return acquireWithRetries(context, plan, 2, endAt, error)
    },
  )
}

async function acquireWithRetries(
  context: AcquireContext,
  plan: AcquirePlan,
  firstTry: number,
  endAt = context.elapsed.now() + plan.waitMs,
  firstError?: unknown,
): Promise<Hold> {
  const { elapsed, platform, pool } = context
  let lastError = firstError
  for (let tries = firstTry; ; tries++) {
    if (plan.signal?.aborted) throw abortedError(`acquire of ${namesOf(plan)}`, plan.signal)
    if (pool.closed) throw closedError()
    if (tries > 1 && (plan.waitMs === 0 ? tries > ATTEMPTS_WITHOUT_WAIT : endAt <= elapsed.now())) {
      if (lastError instanceof UnavailableError) throw lastError
      throw new AcquireTimeoutError(`${namesOf(plan)} was not acquired within ${plan.waitMs} ms`, { cause: lastError })
    }
    try {
      const hold = await attempt(context, plan, endAt)
      if (hold) return pool.closed ? await releaseIfClosed(hold, pool) : hold
    } catch (error) {
      // After a first attempt, an outage is a part of the wait.
      const outage = error instanceof UnavailableError && tries > 1
      if (!isRetryable(error) && !outage) throw toTimeoutError(error, plan)
      lastError = error
    }
    if (pool.closed) throw closedError()
    if (tries > 1) await delay(platform, Math.min(AGAIN_MS, Math.max(1, endAt - elapsed.now())))
  }
}

async function releaseIfClosed(hold: Hold, pool: SessionPool): Promise<Hold> {
  if (!pool.closed) return hold
  await hold[Symbol.asyncDispose]()
  throw closedError()
}

async function attempt(context: AcquireContext, plan: AcquirePlan, endAt: number): Promise<Hold | undefined> {
  const { elapsed } = context
  let keeper = needsDedicatedSession(plan) ? undefined : context.pool.ready(plan.ttlMs, plan.marginMs)
  // Other requests may have taken the session's last request numbers since it was chosen.
  while (keeper === undefined || (keeper.session.congested && keeper.check()))
    keeper = await sessionFor(context, plan, Math.max(0, endAt - elapsed.now()))
  const host = keeper
  const waitMs = plan.waitMs === Number.POSITIVE_INFINITY ? plan.waitMs : Math.max(0, Math.ceil(endAt - elapsed.now()))
  const acquire = (): Promise<EngineGrant> => {
    const end = begin('wait', () => ({ kind: 'wait', call: plan, names: plan.locks.map(({ name }) => name), waitMs }))
    const granted = host.session.acquire({ ...plan, waitMs })
    return observed(end, granted, () => ({}))
  }
  const hold = await keeper.grantHold(acquire, plan).catch((error: unknown) => {
    if (isWindowFull(error, host)) return undefined
    throw error
  })
  if (!hold) return undefined
  if (!needsDedicatedSession(plan) && !plan.persistent && !plan.signal?.aborted) return hold
  return (await applyTerms(keeper, hold, plan)) ? hold : undefined
}

/** Applies `persistent`, `renew`, `maxHold` and `signal` to a grant before it is returned. False: the hold has ended. */
export async function applyTerms(
  keeper: LeaseKeeper,
  hold: Hold,
  plan: Pick<AcquirePlan, 'persistent' | 'renew' | 'maxHoldMs' | 'signal'>,
): Promise<boolean> {
  if (keeper.dedicated) keeper.limit(plan.maxHoldMs)
  // A persistent hold stays only once its grant is acknowledged; a lease that is not renewed begins with its grant.
  if ((plan.persistent || !plan.renew) && !(await confirmed(keeper))) {
    // The service may have granted the persistent hold: it must not stay behind without an owner.
    if (plan.persistent) void hold[Symbol.asyncDispose]()
    return false
  }
  if (!plan.renew) keeper.stopRenewing()
  if (plan.signal?.aborted) {
    await hold[Symbol.asyncDispose]()
    throw abortedError('acquire', plan.signal)
  }
  return isHeld(hold)
}

function isHeld(hold: Hold): boolean {
  return hold.state === 'held'
}

async function confirmed(keeper: LeaseKeeper): Promise<boolean> {
  while (keeper.check()) {
    if (await keeper.renewNow()) return true
    if (keeper.live) await delay(keeper.platform, Math.min(AGAIN_MS, Math.max(1, keeper.remaining())))
  }
  return false
}

async function sessionFor(context: AcquireContext, plan: AcquirePlan, remainingMs: number): Promise<LeaseKeeper> {
  const { platform, pool, connectTimeoutMs } = context
  const dedicated = needsDedicatedSession(plan)
  const opening = dedicated ? pool.dedicated(plan.ttlMs, plan.marginMs) : pool.get(plan.ttlMs, plan.marginMs)
  const bounds = {
    what: `acquire of ${namesOf(plan)}`,
    signal: plan.signal,
    // A wait of 0 does not wait for the lock, but for the connection.
    timeoutMs: plan.waitMs === 0 ? connectTimeoutMs : Math.max(1, remainingMs),
    timeoutError: () => noSessionError(pool.engineStatus),
  }
  try {
    return await bounded(platform, opening, bounds)
  } catch (error) {
    if (dedicated) opening.then((late) => late.close(connectTimeoutMs)).catch(() => {})
    throw error
  }
}

/** The wait ended before a session was open. The engine knows what failed, and the hint. */
function noSessionError(status: EngineStatus): UnavailableError {
  const text = 'no session could be opened within the wait'
  if (status.state === 'connected')
    return new UnavailableError(text, { hint: 'the service is slow: use a longer wait' })
  const cause = status.state === 'connecting' ? status.lastError : undefined
  if (!(cause instanceof LeaseholdError)) return new UnavailableError(text, { cause })
  const code = cause.code === 'no-quorum' ? 'no-quorum' : 'unreachable'
  return new UnavailableError(`${text}: ${cause.message}`, { code, cause, hint: cause.hint })
}

/** A hold that is not renewed, or with a limit, needs a session that ends with it. */
function needsDedicatedSession(plan: AcquirePlan): boolean {
  return !plan.renew || plan.maxHoldMs !== Number.POSITIVE_INFINITY
}

function isRetryable(error: unknown): boolean {
  // NotHolderError: it was granted, and lost before the answer arrived.
  return error instanceof SessionEndedError || error instanceof EpochChangedError || error instanceof NotHolderError
}

/** Whether the request failed because the session has no request numbers left. Another session may have some. */
export function isWindowFull(error: unknown, { session }: LeaseKeeper): boolean {
  return error instanceof LimitError && session.congested
}

/** `busy` is an error of a wait of 0 only. */
function toTimeoutError(error: unknown, plan: AcquirePlan): unknown {
  if (!(error instanceof BusyError) || plan.waitMs === 0) return error
  return new AcquireTimeoutError(`${namesOf(plan)} was not acquired within ${plan.waitMs} ms: ${error.message}`, {
    cause: error,
    hint: (error as LeaseholdError).hint,
  })
}

function namesOf(plan: AcquirePlan): string {
  return quoted(plan.locks.map((lock) => lock.name))
}
