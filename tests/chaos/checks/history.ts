import { checkHistory, judgeTokenGrants, modelNamed, type Operation, type TimedGrant } from '@leasehold/lab'
import type { Judge, Recorded } from '../work/journal.js'

const BUDGET_MS = 60_000
/** In less time no session of the clients can have been given up: well below their TTL less its margin. */
const ABANDONED_US = 1_500_000

export interface Judged {
  readonly judge: Judge
  readonly operations: number
  /** Undefined: linearizable. */
  readonly problem: string | undefined
}

/** Lets the checker judge what the clients saw, model by model. */
export function judgeHistories({ operations }: Recorded): Judged[] {
  return [...operations].map(([judge, all]) => {
    const history = withEnds(judge, [...all, ...unseenGrants(judge, all)])
    const result = checkHistory(modelNamed(judge, {}), history, { budgetMs: BUDGET_MS, now: () => performance.now() })
    const problem =
      result.verdict === 'linearizable'
        ? undefined
        : `${judge}: ${result.verdict}: ${result.explanation?.text ?? JSON.stringify(result.undecided)}`
    return { judge, operations: result.operations, problem }
  })
}

/**
 * A client that was stopped while it waited may have been granted the lock in a session that it then gave up, and asked
 * again in a new one: the first grant was real until that session ended, and no client saw it. Only a shared one leaves a
 * trace: its generation, and so its token, lives on.
 */
function unseenGrants(judge: Judge, all: readonly Operation[]): readonly Operation[] {
  if (judge !== 'rw') return []
  return all
    .filter(
      ({ op, mode, invokedAt, returnedAt = 0 }) =>
        op === 'acquire' && mode === 'shared' && returnedAt - invokedAt > ABANDONED_US,
    )
    .map(({ token: _, ...asked }) => ({
      ...asked,
      outcome: 'unknown',
      owner: `${asked.owner ?? asked.process} unseen`,
    }))
}

/** A hold without an observed end (its process was killed, or never heard of its grant) may end at any time after its grant. */
function withEnds(judge: Judge, all: readonly Operation[]): readonly Operation[] {
  if (judge === 'register') return all
  const ended = new Set(all.filter(({ op }) => op === 'release').map(({ owner }) => owner))
  const ends = all
    .filter(({ op, outcome, owner }) => op === 'acquire' && outcome !== 'fail' && !ended.has(owner))
    .map(({ returnedAt, ...grant }): Operation => {
      const invokedAt = grant.outcome === 'ok' ? (returnedAt as number) : grant.invokedAt
      return { ...grant, op: 'release', outcome: 'unknown', invokedAt }
    })
  return [...all, ...ends]
}

/**
 * Over all clients, without a search: no token of a lock is granted twice, except within a shared generation, and a grant
 * that was asked for after another was known has a greater one.
 */
export function judgeTokens({ operations, notes }: Recorded): string[] {
  const grants: TimedGrant[] = []
  for (const [judge, all] of operations) {
    if (judge === 'register') continue
    for (const { op, outcome, key, token, owner, process, mode, permits, invokedAt, returnedAt } of all) {
      if (op !== 'acquire' || outcome !== 'ok' || token === undefined) continue
      grants.push({
        lock: key,
        token: BigInt(token),
        mode: permits === undefined ? (mode ?? 'exclusive') : { permits },
        hold: owner ?? process,
        askedAt: invokedAt,
        knownAt: returnedAt as number,
      })
    }
  }
  // Only the ends of these acquires are noted. The id of an exclusive hold is its token.
  for (const note of notes) {
    if (note.note !== 'kept' && note.note !== 'long') continue
    const { lock, id, process: hold, at: knownAt } = note
    grants.push({ lock, token: BigInt(id), mode: 'exclusive', hold, askedAt: Number.NEGATIVE_INFINITY, knownAt })
  }
  return judgeTokenGrants(grants).map(({ text }) => text)
}
